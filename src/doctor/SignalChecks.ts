/** Checks whether identity providers can be polled, and whether somebody is held whom nobody can release. */
import { Effect } from "effect"
import { pollStatus } from "../../services/signals/SignalPolling.ts"
import { recentRefusals } from "../../services/signals/SignalRefusals.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"
import { Database } from "../../services/platform/database/Database.ts"
import type { AppConfig } from "../AppConfig.ts"
import { type Finding, ok, warn } from "./Finding.ts"

const what = "signals"

/** Nothing where no transmitter is configured and nobody is held. */
export const signalChecks = Effect.fnUntraced(
  function* ({ signalTransmitters: transmitters }: Pick<AppConfig, "signalTransmitters">) {
    const { sql } = yield* Database
    const issuers = transmitters.map(({ issuer }) => issuer)
    const [left] = yield* sql<{ people: number }>`
    select count(distinct person_id)::int as people from person_holds 
    where kind <> 'released' and transmitter <> all(${issuers}::text[])`
    const polled = new Set(transmitters.flatMap(({ issuer, poll }) => poll === null ? [] : [issuer]))
    const faulty = (yield* pollStatus).filter(({ fault, transmitter }) => fault !== null && polled.has(transmitter))
    const findings: Array<Finding> = []
    if (left!.people > 0) {
      findings.push(warn(
        "held people",
        `people held by a provider that SIGNAL_TRANSMITTERS does not name any more: ${left!.people}`,
        `see "${cliCommand("signals holds")}", and release them: "${cliCommand("signals release")}"`,
      ))
    }
    for (const { fault, transmitter } of faulty) {
      findings.push(warn(what, `${transmitter} ${fault}`, "its events wait there: look at the provider and its token"))
    }
    for (const { reasons, transmitter } of yield* recentRefusals) {
      if (!issuers.includes(transmitter)) continue
      const told = reasons.map(({ err, tokens }) => `${err} ${tokens}`).join(", ")
      findings.push(warn(
        what,
        `tokens of ${transmitter} refused within a day: ${told}`,
        "compare its stream and its keys with SIGNAL_TRANSMITTERS",
      ))
    }
    if (findings.length === 0 && transmitters.length > 0) {
      findings.push(ok(what, `${transmitters.length} transmitters, ${polled.size} of them polled`))
    }
    return findings
  },
)
