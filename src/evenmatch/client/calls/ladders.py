"""Ladders, their rules and seasons, and what there is to make them of."""

from __future__ import annotations

from evenmatch.client.call import Call, at, get, post, put
from evenmatch.client.operation import operation
from evenmatch.http.models.catalog import (
    LadderDetails,
    LadderRules,
    LaddersPage,
    PoliciesPage,
    SeasonsPage,
    SystemsPage,
)
from evenmatch.http.models.changes import (
    LadderAsked,
    LadderTold,
    RulesAsked,
    SeasonAsked,
    SeasonOpened,
    SettingsAsked,
    StartAsked,
    Started,
)
from evenmatch.http.models.corrections import Foreseen
from evenmatch.http.models.jobs import JobTold


class Ladders:
    """Ladders as players read them, and as operators make and change them."""

    @operation
    def list_ladders(self, *, limit: int = 50, cursor: str | None = None) -> Call[LaddersPage]:
        """A page of the ladders that the caller may read, by name."""
        return get(LaddersPage, at("ladders"), {"limit": limit, "cursor": cursor})

    @operation
    def get_ladder(self, ladder: str) -> Call[LadderDetails]:
        """A ladder: its rules with every parameter, its settings, its numbers, its season."""
        return get(LadderDetails, at("ladders", ladder))

    @operation
    def ladder_rules(self, ladder: str) -> Call[LadderRules]:
        """The rules as players read them: what a match changes and why, who is listed, where divisions begin."""
        return get(LadderRules, at("ladders", ladder, "rules"))

    @operation
    def list_seasons(self, ladder: str) -> Call[SeasonsPage]:
        """All seasons of a ladder."""
        return get(SeasonsPage, at("ladders", ladder, "seasons"))

    @operation
    def list_systems(self) -> Call[SystemsPage]:
        """The rating systems that a ladder can have: what they need, their parameters and presets, their factors."""
        return get(SystemsPage, at("systems"))

    @operation
    def list_policies(self) -> Call[PoliciesPage]:
        """The matchmaker's policies that a queue can have, and what each of their options does."""
        return get(PoliciesPage, at("policies"))

    @operation
    def create_ladder(self, ladder: LadderAsked) -> Call[LadderTold]:
        """Make a ladder, rated by an installed system.

        >>> client.create_ladder(LadderAsked(name="arena", system="wager", settings=SettingsAsked(placement=5)))
        """
        return post(LadderTold, at("ladders"), ladder)

    @operation
    def change_settings(self, ladder: str, settings: SettingsAsked) -> Call[LadderTold]:
        """Change title, placement, divisions and the like; ratings stay. What is left out stays as it is."""
        path, read = at("ladders", ladder), LadderTold.model_validate_json
        return Call("PATCH", path, read, body=settings, again=True)

    @operation
    def change_rules(self, ladder: str, rules: RulesAsked) -> Call[JobTold]:
        """Rate by another system or other parameters, as a job; read and report meanwhile as before.

        >>> job = client.change_rules("arena", RulesAsked(parameters={"stake": 0.04}))
        >>> client.wait_for_job(job.job).state
        'done'
        """
        return put(JobTold, at("ladders", ladder, "rules"), rules)

    @operation
    def preview_rules(self, ladder: str, rules: RulesAsked) -> Call[Foreseen]:
        """Who would move by other rules; nothing is changed."""
        return post(Foreseen, at("ladders", ladder, "rules", "preview"), rules, again=True)

    @operation
    def open_season(self, ladder: str, season: SeasonAsked) -> Call[SeasonOpened]:
        """End the present season, keep its standings, and open the next."""
        return post(SeasonOpened, at("ladders", ladder, "seasons"), season, again=season.id is not None)

    @operation
    def start_ratings(self, ladder: str, start: StartAsked) -> Call[Started]:
        """Begin players who have not played here at ratings from elsewhere."""
        return post(Started, at("ladders", ladder, "start-ratings"), start, again=start.id is not None)
