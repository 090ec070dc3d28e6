/** A typed client of evenmatch. `schema.ts` is generated from the OpenAPI document of the service. */

import createFetchClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
/** Why a request was refused. `about:blank`: the answer came from a proxy. */
export type Problem = Omit<Schemas["Problem"], "type"> & { type: Schemas["Problem"]["type"] | "about:blank" };
export type Ticket = Schemas["TicketOut"];
export type TicketEvent = Schemas["TicketEvent"];
export type Evenmatch = Client<paths>;

const TEMPORARY = [429, 502, 503, 504]; // HTTP statuses after which the same request may succeed
const [FIRST_PAUSE, LONGEST_PAUSE] = [0.1, 5]; // seconds before `follow` reconnects: doubled each time

/** The service refused a request. `problem.type` is for programs, the message for people. */
export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return TEMPORARY.includes(this.problem.status);
  }
}

/** Create a client. `key` is an API key, which belongs on a server, or a player's token. */
export function connect(url: string, key: string): Evenmatch {
  return createFetchClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
}

/** Return the body of an answer. Throws ProblemError if the service, or a proxy in front of it, refused the request. */
export async function body<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) {
    return data as T;
  }
  if (typeof error === "object") {
    throw new ProblemError(error as Problem);
  }
  const { status, statusText, url } = response;
  throw new ProblemError({ type: "about:blank", title: statusText, status, detail: `${url}: ${status} ${statusText}` });
}

/** Whether nothing about a ticket will change any more: it is gone, or its match has ended. */
export function isOver(ticket: Ticket): boolean {
  return ticket.state === "gone" || (ticket.state === "matched" && ticket.match?.state !== "open");
}

/**
 * Follow a ticket from the queue to the end of its match. Reading the stream is a heartbeat.
 *
 * The service ends each stream after a minute. This function then opens the next one, and also reconnects while the service
 * restarts or cannot be reached. Each stream begins with the present state, so an event may come twice.
 *
 * patience  seconds without an answer after which it gives up
 * Throws ProblemError if the service refuses the request, and what `fetch` throws if nothing answers.
 */
export async function* follow(
  evenmatch: Evenmatch,
  ladder: string,
  ticket: number,
  patience = 30,
): AsyncGenerator<TicketEvent> {
  let [pause, givesUpAt] = [FIRST_PAUSE, Infinity];
  for (;;) {
    try {
      for await (const event of eventsOf(await openStream(evenmatch, ladder, ticket))) {
        [pause, givesUpAt] = [FIRST_PAUSE, Infinity];
        yield event;
        if (isOver(event.data)) {
          return;
        }
      }
    } catch (error) {
      const now = performance.now() / 1000;
      givesUpAt = Math.min(givesUpAt, now + patience);
      const wait = pause * (0.5 + Math.random() / 2); // so that clients spread out
      if (!isTemporary(error) || now + wait > givesUpAt) {
        throw error;
      }
      await new Promise((resume) => setTimeout(resume, wait * 1000));
      pause = Math.min(LONGEST_PAUSE, 2 * pause);
    }
  }
}

/** Whether the request that failed may succeed later. `fetch` throws TypeError if the connection fails. */
function isTemporary(error: unknown): boolean {
  return error instanceof ProblemError ? error.isTemporary : error instanceof TypeError;
}

async function openStream(evenmatch: Evenmatch, ladder: string, ticket: number): Promise<ReadableStream<Uint8Array>> {
  const path = "/v1/ladders/{ladder}/tickets/{ticket}/events";
  const stream = await body(evenmatch.GET(path, { params: { path: { ladder, ticket } }, parseAs: "stream" }));
  return stream as ReadableStream<Uint8Array>;
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
