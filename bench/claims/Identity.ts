/**
 * The identity API's claims: reads of a person's account and of an institution's list of reviews beside hand-written
 * ones, tokens verified a second, and the latency of writes at a steady rate.
 */
import { Effect } from "effect"
import { BenchError } from "../harness/Child.ts"
import type { Claim, Finding, Run } from "../harness/Claim.ts"
import type { Table } from "../harness/Figures.ts"
import { fill, institutions, listers, readers, seats } from "../harness/IdentityFixture.ts"
import { peopleTokens } from "../harness/PeopleTokens.ts"
import { connections, reads, readsTables } from "./Identity/IdentityReads.ts"
import {
  accessesOf,
  type Round as Written,
  secondsEach,
  sustained,
  writeCost,
  writes,
  writesTable,
} from "./Identity/Writes.ts"
import { verification, verificationTable } from "./Identity/Verification.ts"

const template = "identity"

const parts = ["reads", "tokens", "writes"] as const
type Part = (typeof parts)[number]

const broken = (cause: unknown) =>
  cause instanceof BenchError ? cause : new BenchError({ message: `identity: ${String(cause)}` })

const measured = Effect.fnUntraced(function* (run: Run, wanted: (part: Part) => boolean) {
  const tokens = yield* peopleTokens
  yield* run.tell("writing institutions and reviews")
  yield* run.servers.template(template, fill(accessesOf(run)))
  const tables: Array<Table> = []
  const raw: { reads?: unknown; tokens?: unknown; writes?: ReadonlyArray<Written> } = {}
  if (wanted("reads")) {
    const fixture = yield* run.servers.fixture(template)
    yield* fixture.sql`vacuum analyze`
    const { round } = yield* reads(run, fixture, tokens)
    const rounds = []
    for (let n = 1; n <= run.rounds; n++) {
      yield* run.tell(`round ${n} of ${run.rounds}: reads`)
      rounds.push(yield* round)
    }
    tables.push(...readsTables(rounds))
    raw.reads = rounds
  }
  if (wanted("tokens")) {
    const { round } = yield* verification(run, tokens)
    const rounds = []
    for (let n = 1; n <= run.rounds; n++) {
      yield* run.tell(`round ${n} of ${run.rounds}: tokens`)
      rounds.push(yield* round)
    }
    tables.push(verificationTable(rounds))
    raw.tokens = rounds
  }
  if (wanted("writes")) {
    const rounds: Array<Written> = []
    for (let n = 1; n <= run.rounds; n++) {
      yield* run.tell(`round ${n} of ${run.rounds}: writes`)
      rounds.push(yield* writes(run, template, tokens))
    }
    yield* run.tell("counting statements")
    tables.push(writesTable(rounds), yield* writeCost(run, template, tokens))
    raw.writes = rounds
  }
  return { tables, raw }
})

/** `only` names the parts to run, for work on one of them. */
export const identity = (only?: ReadonlyArray<string>): Claim => ({
  name: "identity",
  title: "The identity API: reads, tokens and writes",
  measure: (run) =>
    Effect.gen(function* () {
      const unknown = only?.find((name) => !parts.some((part) => part === name))
      if (unknown !== undefined) return yield* broken(`${unknown} is not one of ${parts.join(", ")}`)
      const { raw, tables } = yield* measured(run, (part) => only?.includes(part) ?? true)
      return {
        tables,
        notes: [
          `Reads: ${connections} keep-alive connections from a process of their own, ${
            run.quick ? 2 : 4
          } s each after 1 s of warming up; a person's own account by ${readers} people with three memberships and five Accesses, the list by ${listers} administrators, each with a token of RS256. Answers are equal, compared before.`,
          "The peers on Node 24 verify the token with the same checks, then take one statement for the caller, one for the roles and one for the rows; pools of 10. They have no sessions, limits, audit and request ids. One of them verifies every token each time, the other one caches verified tokens for a minute, as the program does.",
          "Tokens: 32 at a time; a token verified within the last minute is found by its digest. Signatures are the runtime's own (WebCrypto).",
          `Writes: ${
            secondsEach(run)
          } s at each rate, sent at their time, whatever is still in progress; a latency counts from that moment. Of ten writes three propose a review, two approve and one revokes one, two ask for Access and two make a person, by ${
            2 * seats * institutions
          } deciders of ${institutions} institutions, each with an idempotency key; the client runs on the same machine.`,
          ...sustained(raw.writes ?? []),
          "Medians over interleaved rounds, ratios within a round.",
        ],
        raw,
      } satisfies Finding
    }).pipe(Effect.mapError(broken)),
})
