/**
 * The identity API's claims: one's own account and an institution's list of reviews beside the same by hand, how many
 * tokens are verified, and how long writes take at a steady rate.
 */
import { Effect } from "effect"
import { BenchError } from "../harness/Child.ts"
import type { Claim, Finding, Run, Table } from "../harness/Claim.ts"
import { fill } from "../harness/IdentityFixture.ts"
import { peopleTokens } from "../harness/PeopleTokens.ts"
import { connections, reads, readsTables } from "./Identity/Reads.ts"
import { accessesOf, rates, secondsEach, writes, writesTable } from "./Identity/Writes.ts"
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
  const raw: Partial<Record<Part, unknown>> = {}
  if (wanted("reads")) {
    const world = yield* run.servers.world(template)
    yield* world.sql`vacuum analyze`
    const { round } = yield* reads(run, world, tokens)
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
    const rounds = []
    for (let n = 1; n <= run.rounds; n++) {
      yield* run.tell(`round ${n} of ${run.rounds}: writes`)
      rounds.push(yield* writes(run, template, tokens))
    }
    tables.push(writesTable(rounds))
    raw.writes = rounds
  }
  return { tables, raw }
})

/** `only` names the parts, for work on one of them. */
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
        notes: [`${connections} connections`],
        raw,
      } satisfies Finding
    }).pipe(Effect.mapError(broken)),
})
