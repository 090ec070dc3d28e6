/**
 * A studio's backend and two of its players, from the login to the rating.
 *
 * EVENMATCH_URL and EVENMATCH_KEY name a service with a ladder `arena` and a queue `main` of duels. The key has the scopes
 * `queue` and `report`, and only the backend has it: a player gets a token.
 */

import { body, connect, follow, type Evenmatch, type Ticket } from "../../src/index.js";

const url = process.env["EVENMATCH_URL"] ?? "http://127.0.0.1:8080";
const key = process.env["EVENMATCH_KEY"];
if (!key) {
  console.error("EVENMATCH_KEY is not set");
  process.exit(1);
}
const ladder = "arena";
const backend = connect(url, key);
const servers = ["203.0.113.7:7777"];
const announced = new Map<string, Promise<void>>();

/** After the login: the token with which a player's game queues. */
async function login(player: string): Promise<Evenmatch> {
  const { token } = await body(backend.POST("/v1/tokens", { body: { player } }));
  return connect(url, token);
}

/** The backend gives a match its server, once. */
function announce(match: NonNullable<Ticket["match"]>): Promise<void> {
  const known = announced.get(match.match_id);
  if (known !== undefined) {
    return known;
  }
  const players = match.teams.flat().map((one) => one.player);
  const tokens = Object.fromEntries(players.map((player) => [player, crypto.randomUUID()]));
  const begun = body(
    backend.PUT("/v1/ladders/{ladder}/live/{match_id}", {
      params: { path: { ladder, match_id: match.match_id } },
      body: {
        teams: match.teams.map((team) => ({ players: team.map((one) => one.player) })),
        connection: { address: servers[0] ?? "", tokens },
      },
    }),
  ).then(() => undefined);
  announced.set(match.match_id, begun);
  return begun;
}

/** The game server reports the result: the first team wins. */
async function finish(matchId: string): Promise<void> {
  await body(
    backend.POST("/v1/ladders/{ladder}/live/{match_id}/close", {
      params: { path: { ladder, match_id: matchId } },
      body: { teams: [{ score: 2 }, { score: 1 }] },
    }),
  );
}

/** A player's game: queue, accept, connect, and show what the match did. */
async function play(player: string, connected: () => Promise<void>): Promise<void> {
  const game = await login(player);
  const joined = await body(
    game.POST("/v1/ladders/{ladder}/tickets", {
      params: { path: { ladder } },
      body: { queues: ["main"], members: [{ player }] },
    }),
  );
  let isConnected = false;
  for await (const { event, data: ticket } of follow(game, ladder, joined.ticket)) {
    const { offer, match } = ticket;
    if (offer && offer.own[player] === false) {
      const path = { ladder, ticket: ticket.ticket };
      await body(
        game.POST("/v1/ladders/{ladder}/tickets/{ticket}/accept", {
          params: { path },
          body: { offer: offer.offer },
        }),
      );
    } else if (event === "announced" && match?.connection && !isConnected) {
      isConnected = true;
      const { address, tokens } = match.connection;
      console.log(`${player} connects to ${address} with ${Object.keys(tokens).join(", ")}'s token`);
      await connected();
    } else if (event === "rated" && match?.receipt) {
      const rating = match.receipt.players[player];
      console.log(`${player} ${rating?.before} → ${rating?.after}, see ${rating?.page}`);
      const path = { ladder, match_id: match.match_id, player };
      const result = await body(game.GET("/v1/ladders/{ladder}/matches/{match_id}/results/{player}", { params: { path } }));
      console.log(`${player}: ${[result.headline, result.otherwise].filter(Boolean).join(" ")}`);
    } else if (match && match.state === "open" && !isConnected) {
      await announce(match); // in a studio, the backend learns of the match by webhook: match.made
    }
  }
}

let arrived = 0;
let matchId = "";
await Promise.all(
  ["ann", "bob"].map((player) =>
    play(player, async () => {
      matchId = [...announced.keys()][0] ?? "";
      arrived += 1;
      if (arrived === 2) {
        await finish(matchId);
      }
    }),
  ),
);
