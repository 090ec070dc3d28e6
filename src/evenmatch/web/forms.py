"""Submitted forms: the values as typed, the error if refused, and the field that the error belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError, UnknownNameError

CONFIRM = "confirm"  # the field in which a name is typed as confirmation; never filled from the URL
Fields = tuple[tuple[str, str], ...]  # names and values, in the order of the request


class FieldError(EvenmatchError):
    """An error that belongs to one form field; `error` is the original exception."""

    def __init__(self, field: str, error: EvenmatchError) -> None:
        self.field, self.error = field, error
        super().__init__(str(error))


@contextmanager
def about(field: str) -> Iterator[None]:
    """Turn an EvenmatchError of the block into a FieldError for this field."""
    try:
        yield
    except FieldError:
        raise
    except EvenmatchError as error:
        raise FieldError(field, error) from error


@dataclass(frozen=True)
class Form:
    """A form on a page: empty, or with the values and the error of a refused submission.

    action  the URL that it is submitted to
    sent    the submitted values; None: not submitted yet
    error   why it was refused;  field  the field with the error, None: the form as a whole
    """

    action: str
    sent: Fields | None = None
    error: EvenmatchError | None = None
    field: str | None = None

    def value(self, name: str, first: object = "") -> object:
        """The value of a field as typed; `first` if the form was not submitted or has no such value."""
        return dict(self.sent or ()).get(name, first)

    def is_chosen(self, name: str, value: object, first: bool = False) -> bool:
        """Whether a checkbox is ticked or an option selected; `first` if the form was not submitted."""
        return first if self.sent is None else (name, str(value)) in self.sent

    def wrong(self, name: str) -> str | None:
        """The error message of a field."""
        return str(self.error) if self.error is not None and self.field == name else None

    @property
    def refusal(self) -> str | None:
        """The error message that belongs to no single field."""
        return str(self.error) if self.error is not None and self.field is None else None

    @property
    def meant(self) -> str | None:
        """The known name closest to an unknown one that was typed."""
        return self.error.close if isinstance(self.error, UnknownNameError) else None


def refused(action: str, sent: Fields, error: EvenmatchError) -> Form:
    """Return the form submitted to this URL and refused with this error."""
    if isinstance(error, FieldError):
        return Form(action, sent, error.error, error.field)
    return Form(action, sent, error)
