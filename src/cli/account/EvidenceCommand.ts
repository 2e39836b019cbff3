/**
 * `evidence`: packs of evidence (docs/evidence.md). `pack` takes one as a Sponsor, an administrator or an auditor;
 * `verify` needs neither a credential nor the program: only the file, and the keys that it is told.
 */
import { Clock, Console, Effect, FileSystem, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { verifyEvidencePack } from "../../../sdk/VerifyEvidence.ts"
import type { Jwk } from "../../../sdk/Keys.ts"
import { Refusal } from "../../../sdk/Refusal.ts"
import { noteKey } from "../../../sdk/SignedNote.ts"
import { cliCommand } from "../../../services/platform/CommandSpelling.ts"
import { CliFault } from "../CliFault.ts"
import { printable } from "../EscapeControls.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { reasonOf } from "../Reason.ts"
import { printOne } from "../RowOutput.ts"
import { momentFlag } from "../Times.ts"
import { called } from "./CallerApi.ts"

const institution = Flag.String("institution").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("The institution's id"),
)

const packPath = "/v1/institutions/{institution_id}/evidence"

const pack = Command.make(
  "pack",
  {
    institution,
    person: Flag.String("person").pipe(Flag.withMetavar("ID"), Flag.withDescription("Of one person"), Flag.optional),
    review: Flag.String("review").pipe(Flag.withMetavar("ID"), Flag.withDescription("Of one review"), Flag.optional),
    since: momentFlag("since").pipe(
      Flag.withDescription("In force, or waiting, at this time or later, or this long ago"),
      Flag.optional,
    ),
    until: momentFlag("until").pipe(Flag.withDescription("Decided before this time"), Flag.optional),
  },
  Effect.fn("cli.evidence.pack")(function* ({ institution: institution_id, person, review, since, until }) {
    const now = yield* Clock.currentTimeMillis
    const moment = (of: typeof since) => Option.getOrUndefined(Option.map(of, (at) => new Date(at(now)).toISOString()))
    const asked = {
      person_id: Option.getOrUndefined(person),
      review_id: Option.getOrUndefined(review),
      since: moment(since),
      until: moment(until),
    }
    let after: string | undefined
    do {
      const query = { ...asked, after }
      const part: string = yield* called((api, signal) =>
        api.get(packPath, { params: { institution_id }, query, signal })
      )
      yield* Console.log(part.trimEnd())
      after = JSON.parse(part.trimEnd().split("\n").at(-1)!).next ?? undefined
    } while (after !== undefined)
  }),
).pipe(
  Command.withDescription("Prints a pack of evidence: Access, requests, reviews, and the proof of each decision"),
  Command.withExamples([{
    command: cliCommand("evidence pack --institution fern --person 0199... > pack.ndjson"),
    description: "What a person may do in an institution, and why",
  }]),
)

const served = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const text = yield* files.readFileString(file)
  return yield* Effect.try({
    try: (): ReadonlyArray<Jwk> => {
      const { keys } = JSON.parse(text)
      if (!Array.isArray(keys)) throw new Error("no key set")
      return keys
    },
    catch: (error) => new CliFault({ message: printable(`${file}: ${reasonOf(error)}`) }),
  })
})

const verify = Command.make(
  "verify",
  {
    file: Argument.String("file").pipe(Argument.withDescription("The pack")),
    institution,
    keys: Flag.String("keys").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("The keys that sign lifecycle messages, as /v1/lifecycle/jwks had them"),
    ),
    issuer: Flag.String("issuer").pipe(
      Flag.withMetavar("URL"),
      Flag.withDescription("Who has to have signed it: https://HOST/lifecycle"),
    ),
    logKey: Flag.String("log-key").pipe(
      Flag.withMetavar("KEY"),
      Flag.withDescription(`The transparency log's key ("${cliCommand("log key")}"); without it no proof is looked at`),
      Flag.atLeast(0),
    ),
    json: jsonFlag,
  },
  Effect.fn("cli.evidence.verify")(function* ({ file, institution, issuer, json, keys, logKey: logKeys }) {
    const jwks = yield* served(keys)
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    const text = yield* (yield* FileSystem.FileSystem).readFileString(file)
    const found = yield* Effect.tryPromise({
      try: () =>
        verifyEvidencePack(text, {
          issuer,
          institution,
          jwks: { keys: jwks },
          now: () => now,
          ...(logKeys[0] === undefined ? {} : { log: { origin: noteKey(logKeys[0]).name, logKeys } }),
        }),
      catch: (error) =>
        new CliFault({
          message: printable(error instanceof Refusal ? `the pack is refused: ${error.message}` : reasonOf(error)),
        }),
    })
    const { asOf, decisions, institutionId, items, parts, scope } = found
    const proved = decisions.filter(({ provedAt }) => provedAt !== null).length
    yield* printOne(
      {
        institution: institutionId,
        as_of: asOf,
        ...scope,
        parts,
        items: items.length,
        decisions: decisions.length,
        proved,
      },
      json,
    )
  }),
).pipe(Command.withDescription("Verifies a pack offline: that it is whole and signed, and each decision in the log"))

export const evidence = Command.make("evidence").pipe(
  Command.withDescription("Packs of evidence: who may act in an institution, and why"),
  Command.withSubcommands([pack, verify]),
)
