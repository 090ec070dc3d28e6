"""Ladders, their rules and seasons; rating systems and matchmaking policies."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.client.call import Call, get, new_key, path_of, post, put, whole
from evenmatch.client.operation import operation
from evenmatch.http.models.corrections import CorrectionEffect
from evenmatch.http.models.jobs import JobOut
from evenmatch.http.models.ladders import (
    DecayOut,
    HeadOut,
    LadderCreate,
    LadderDetails,
    LadderOut,
    LadderRules,
    LaddersPage,
    LearnedPage,
    PoliciesPage,
    RulesChange,
    SeasonCreate,
    SeasonOpened,
    SeasonsPage,
    SettingsChange,
    StartingRatings,
    StartingRatingsSet,
    SystemsPage,
)


class Ladders:
    """Reading ladders, and creating and changing them."""

    @operation
    def list_ladders(self, *, limit: int = 50, cursor: str | None = None) -> Call[LaddersPage]:
        """A page of the ladders that the caller may read, sorted by name."""
        return get(LaddersPage, path_of("ladders"), {"limit": limit, "cursor": cursor})

    @operation
    def get_ladder(self, ladder: str) -> Call[LadderDetails]:
        """A ladder: system and parameters, settings, counts, and current season."""
        return get(LadderDetails, path_of("ladders", ladder))

    @operation
    def ladder_rules(self, ladder: str) -> Call[LadderRules]:
        """The rules in words for players: what a match changes and why, who is listed, where divisions begin."""
        return get(LadderRules, path_of("ladders", ladder, "rules"))

    @operation
    def ladder_head(self, ladder: str) -> Call[HeadOut]:
        """The last event of a ladder's ledger, with the seal over all its events."""
        return get(HeadOut, path_of("ladders", ladder, "head"))

    @operation
    def learned_of_ladder(self, ladder: str) -> Call[LearnedPage]:
        """The numbers that the rating system has learned of a ladder; none for systems that learn nothing of it."""
        return get(LearnedPage, path_of("ladders", ladder, "learned"))

    @operation
    def list_seasons(self, ladder: str) -> Call[SeasonsPage]:
        """All seasons of a ladder."""
        return get(SeasonsPage, path_of("ladders", ladder, "seasons"))

    @operation
    def list_systems(self) -> Call[SystemsPage]:
        """The available rating systems: required data, parameters, presets and factors."""
        return get(SystemsPage, path_of("systems"))

    @operation
    def list_policies(self) -> Call[PoliciesPage]:
        """The available policies of the matchmaker, and what each option does."""
        return get(PoliciesPage, path_of("policies"))

    @operation
    def create_ladder(self, ladder: LadderCreate) -> Call[LadderOut]:
        """Create a ladder, rated by an installed system.

        >>> client.create_ladder(LadderCreate(name="arena", system="wager", settings=SettingsChange(placement=5)))
        """
        return post(LadderOut, path_of("ladders"), ladder)

    @operation
    def change_settings(self, ladder: str, settings: SettingsChange) -> Call[LadderOut]:
        """Change settings such as title, placement, divisions; omitted ones and all ratings stay unchanged."""
        path, read = path_of("ladders", ladder), LadderOut.model_validate_json
        return Call("PATCH", path, read, body=settings, idempotency_key=new_key())

    @operation
    def change_rules(self, ladder: str, rules: RulesChange) -> Call[JobOut]:
        """Start a job that changes system or parameters; reading and reporting go on meanwhile.

        >>> job = client.change_rules("arena", RulesChange(parameters={"stake": 0.04}))
        >>> client.wait_for_job(job.job).state
        'done'
        """
        return put(JobOut, path_of("ladders", ladder, "rules"), rules)

    @operation
    def preview_rules(self, ladder: str, rules: RulesChange) -> Call[CorrectionEffect]:
        """The rating changes that other rules would cause; nothing is changed."""
        return post(CorrectionEffect, path_of("ladders", ladder, "rules", "preview"), rules, again=True, of_job=_effect)

    @operation
    def open_season(self, ladder: str, season: SeasonCreate) -> Call[SeasonOpened]:
        """End the current season, store its final standings and open the next."""
        return post(
            SeasonOpened, path_of("ladders", ladder, "seasons"), season, again=season.id is not None, of_job=whole
        )

    @operation
    def start_ratings(self, ladder: str, start: StartingRatings) -> Call[StartingRatingsSet]:
        """Set starting ratings of players who have not played on this ladder."""
        return post(StartingRatingsSet, path_of("ladders", ladder, "start-ratings"), start, again=start.id is not None)

    @operation
    def decay_ratings(self, ladder: str) -> Call[DecayOut]:
        """Lower the ratings of inactive players by the ladder's rule, as the service does by itself once a day."""
        return post(DecayOut, path_of("ladders", ladder, "decay"), again=True)

    @operation
    def preview_decay(self, ladder: str, *, days: float = 0) -> Call[CorrectionEffect]:
        """The ratings that would fall by inactivity after some days without matches; nothing is changed.

        >>> client.preview_decay("arena", days=3).moves  # to tell them in time
        """
        return get(CorrectionEffect, path_of("ladders", ladder, "decay", "preview"), {"days": days})


def _effect(result: Mapping[str, object]) -> object:
    return result["effect"]
