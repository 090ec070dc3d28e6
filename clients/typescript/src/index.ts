/** A typed client of evenmatch. `schema.ts` is generated from the OpenAPI document of the service. */

import createFetchClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
export type Ticket = Schemas["TicketOut"];
export type TicketEvent = Schemas["TicketEvent"];
export type Evenmatch = Client<paths>;

/** An error that the service answered with. `problem.type` is for programs, the message for people. */
export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** Create a client. `key` is an API key, which belongs on a server, or a player's token. */
export function connect(url: string, key: string): Evenmatch {
  return createFetchClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
}

/** Return the body of an answer. Throws ProblemError if the service refused the request. */
export async function body<T>(answer: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await answer;
  if (error !== undefined) {
    throw new ProblemError(error as Problem);
  }
  return data as T;
}

/** Whether nothing about a ticket will change any more: it is gone, or its match has ended. */
export function isOver(ticket: Ticket): boolean {
  return ticket.state === "gone" || (ticket.state === "matched" && ticket.match?.state !== "open");
}

/**
 * Follow a ticket from the queue to its rating. Reading the stream is a heartbeat.
 *
 * The service ends each stream after a minute, and this function opens the next one, which repeats the present state. It
 * returns after the last event. Throws ProblemError.
 */
export async function* follow(evenmatch: Evenmatch, ladder: string, ticket: number): AsyncGenerator<TicketEvent> {
  for (;;) {
    const stream = await body(
      evenmatch.GET("/v1/ladders/{ladder}/tickets/{ticket}/events", {
        params: { path: { ladder, ticket } },
        parseAs: "stream",
      }),
    );
    for await (const event of eventsOf(stream as ReadableStream<Uint8Array>)) {
      yield event;
      if (isOver(event.data)) {
        return;
      }
    }
  }
}

async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<TicketEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of stream) {
    const blocks = (text + decoder.decode(part, { stream: true })).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]));
      const [id, event, data] = [fields.get("id"), fields.get("event"), fields.get("data")];
      if (data !== undefined) {
        yield { id: Number(id), event: event as TicketEvent["event"], data: JSON.parse(data) as Ticket };
      }
    }
  }
}
