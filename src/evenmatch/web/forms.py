"""Forms as a visitor left them: what was typed, why it was refused, and beside which field that is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError, UnknownNameError

CONFIRM = "confirm"  # the field of a name that is typed as a confirmation: no link fills it
Fields = tuple[tuple[str, str], ...]  # names and values, as they were sent


class FieldError(EvenmatchError):
    """An error about one field of a form; `error` is what went wrong."""

    def __init__(self, field: str, error: EvenmatchError) -> None:
        self.field, self.error = field, error
        super().__init__(str(error))


@contextmanager
def about(field: str) -> Iterator[None]:
    """Let errors that are raised inside be shown beside this field."""
    try:
        yield
    except FieldError:
        raise
    except EvenmatchError as error:
        raise FieldError(field, error) from error


@dataclass(frozen=True)
class Form:
    """A form on a page: as it is at first, or as it was sent and refused.

    action  the address that it is sent to
    sent    what was typed; None: it is shown for the first time
    error   why it was refused;  field  the one that it is about, None: the form as a whole
    """

    action: str
    sent: Fields | None = None
    error: EvenmatchError | None = None
    field: str | None = None

    def value(self, name: str, first: object = "") -> object:
        """What stands in a field: as typed, or `first` where the form was sent without it."""
        return dict(self.sent or ()).get(name, first)

    def is_chosen(self, name: str, value: object, first: bool = False) -> bool:
        """Whether a box is ticked, or an option chosen; at first: `first`."""
        return first if self.sent is None else (name, str(value)) in self.sent

    def wrong(self, name: str) -> str | None:
        """What is wrong with a field."""
        return str(self.error) if self.error is not None and self.field == name else None

    @property
    def refusal(self) -> str | None:
        """Why it was refused, where that is about no single field."""
        return str(self.error) if self.error is not None and self.field is None else None

    @property
    def meant(self) -> str | None:
        """The name that was probably meant, where an unknown one was typed."""
        return self.error.close if isinstance(self.error, UnknownNameError) else None


def refused(action: str, sent: Fields, error: EvenmatchError) -> Form:
    """The form that was sent to an address and refused by this error."""
    if isinstance(error, FieldError):
        return Form(action, sent, error.error, error.field)
    return Form(action, sent, error)
