/**
 * `listen`: POSTs the deliveries of an account to a port of this machine as they are made, with the headers that an
 * endpoint gets, signed anew. It reads the list of deliveries every second and changes nothing: what becomes of a
 * delivery at its own endpoint is another matter.
 *
 * In the order of their making, one after another. With `--state` a later `listen` goes on where this one ended: at
 * least once, since a kill between the receiver's answer and the file repeats one.
 */
import { Clock, Config, Console, Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import process from "node:process"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import { generateSecret, headersFor } from "../../../services/webhooks/Signer.ts"
import { type Client, Problem, type WebhookDelivery } from "../../../sdk/client/Client.ts"
import { CliFault } from "../CliFault.ts"
import { printable, printableJson } from "../EscapeControls.ts"
import { momentFlag } from "../Times.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { api, faultOf } from "./CallerApi.ts"
import { type ListenState, overlapMillis, readState, secretPattern, tookOne, writeState } from "./ListenState.ts"
import { postTo } from "./LocalReceiver.ts"
import { cliCommand } from "../../../services/platform/CommandSpelling.ts"

const pollInterval = "1 second"
const listPath = "/v1/webhook-deliveries"

interface Target {
  readonly port: number
  readonly path: string
  readonly json: boolean
}

/** The secret of WEBHOOK_SECRET, by which the receiver verifies already, where it is set. */
const secretOf = Effect.gen(function* () {
  const given = yield* Config.option(Config.Redacted("WEBHOOK_SECRET"))
  if (Option.isNone(given)) return null
  const secret = Redacted.value(given.value)
  if (!secretPattern.test(secret)) {
    return yield* new CliFault({
      message: "WEBHOOK_SECRET: is no secret of a webhook, such as whsec_MfKQ9r8GKYqrTwjU…",
    })
  }
  return secret
})

/** Whether the API may answer otherwise after a pause. */
const passes = ({ status }: Problem) => status === 0 || status === 429 || status >= 500

/** Asks the API until it answers; a problem that waiting does not mend ends the command. */
const asked = <Answer>(one: Client, ask: (one: Client, signal: AbortSignal) => Promise<Answer>) =>
  Effect.gen(function* () {
    let told = false
    for (;;) {
      const answer = yield* Effect.result(Effect.tryPromise({ try: (signal) => ask(one, signal), catch: (e) => e }))
      if (answer._tag === "Success") return answer.success
      const fault = faultOf(answer.failure)
      if (!(answer.failure instanceof Problem && passes(answer.failure))) return yield* fault
      if (!told) yield* Console.error(printable(`${fault.message}; trying again`))
      told = true
      yield* Effect.sleep(pollInterval)
    }
  })

/** The new deliveries, the oldest first. Only ids and times are held of a long list. */
const newSince = Effect.fnUntraced(function* (
  one: Client,
  { seen, since }: ListenState,
  query: { readonly webhook_id?: string | undefined; readonly event_type?: WebhookDelivery["event_type"] | undefined },
) {
  return yield* asked(one, async (one, signal) => {
    const found: Array<Pick<WebhookDelivery, "id" | "created_at">> = []
    const from = { ...query, since: new Date(since).toISOString(), limit: 100 }
    for await (const { created_at, id } of one.items(listPath, { query: from, signal })) {
      if (!(id in seen)) found.push({ id, created_at })
    }
    return found.reverse()
  })
})

/** Hands one delivery to the receiver, and waits while no server listens on its port. */
const handed = Effect.fnUntraced(function* (one: Client, id: string, secret: string, { json, path, port }: Target) {
  const found = yield* asked(
    one,
    (one, signal) =>
      one.get("/v1/webhook-deliveries/{delivery_id}", { params: { delivery_id: id }, signal }).catch((error) => {
        // Its webhook was deleted since it was listed.
        if (error instanceof Problem && error.status === 404) return null
        throw error
      }),
  )
  if (found === null) return
  const { attempt, event_type, payload, request } = found
  // Before the first attempt the API shows the body parsed: written again it has the same bytes.
  const body = request?.body ?? JSON.stringify(payload)
  for (let told = false;; told = true) {
    const began = yield* Clock.currentTimeMillis
    const headers = headersFor({
      deliveryId: id,
      eventType: event_type,
      attempt: Math.max(1, attempt),
      timestampSeconds: Math.floor(began / 1000),
      body,
      secrets: [secret],
    })
    const outcome = yield* postTo(port, path, headers, body).pipe(Effect.catch((error) => Effect.succeed(error)))
    if (outcome !== null) {
      const millis = (yield* Clock.currentTimeMillis) - began
      return yield* Console.log(
        json
          ? printableJson({ delivery_id: id, event: event_type, outcome, millis })
          : printable(`${new Date(began).toISOString()} ${event_type} ${id} ${outcome} (${millis} ms)`),
      )
    }
    if (!told) yield* Console.error(`nothing listens on 127.0.0.1:${port}: waiting for it`)
    yield* Effect.sleep(pollInterval)
  }
})

const port = Argument.Int("PORT").pipe(
  Argument.withDescription("The port on 127.0.0.1"),
  Argument.filter((n) => n >= 1 && n <= 65_535, () => "a port from 1 to 65535"),
)

const flags = {
  path: Flag.String("path").pipe(
    Flag.withDescription("The path of the requests (default /)"),
    Flag.filter((text) => /^\/[\x21-\x7e]*$/.test(text), () => "a path such as /hooks"),
    Flag.withDefault("/"),
  ),
  webhook: Flag.String("webhook").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Of this webhook only"),
    Flag.optional,
  ),
  event: Flag.Literals("event", eventTypes).pipe(Flag.withDescription("Of this type only"), Flag.optional),
  since: momentFlag("since").pipe(
    Flag.withDescription("Begins with deliveries of this time, or of this long ago (default: now)"),
    Flag.optional,
  ),
  state: Flag.String("state").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("Keeps how far it is in this file, and goes on from there"),
    Flag.optional,
  ),
  json: jsonFlag,
}

/**
 * The file's state, or a new one. By default it begins after the newest delivery, and not at a time of this machine,
 * whose clock may differ from the installation's.
 */
const begun = Effect.fnUntraced(function* (
  one: Client,
  file: string | undefined,
  from: Option.Option<(now: number) => number>,
) {
  const kept = file === undefined ? null : yield* readState(file)
  if (kept !== null) return kept
  const fresh = { secret: generateSecret(), seen: {} }
  if (Option.isSome(from)) return { ...fresh, since: Math.trunc(from.value(yield* Clock.currentTimeMillis)) }
  const { items: [newest] } = yield* asked(one, (one, signal) => one.get(listPath, { query: { limit: 1 }, signal }))
  if (newest === undefined) return { ...fresh, since: 0 }
  const at = Date.parse(newest.created_at)
  const since = at - overlapMillis
  const before = yield* newSince(one, { ...fresh, since }, {})
  const times = before.map(({ created_at, id }) => [id, Date.parse(created_at)] as const)
  // Deliveries made meanwhile are new.
  const seen = Object.fromEntries(times.filter(([, time]) => time <= at))
  return { ...fresh, since, seen }
})

export const listen = Command.make(
  "listen",
  { port, ...flags },
  Effect.fn("cli.listen")(function* ({ event, since, state: stateFlag, webhook, ...target }) {
    const one = yield* api
    const file = Option.getOrUndefined(stateFlag)
    let state = yield* begun(one, file, since)
    const given = yield* secretOf
    const query = { webhook_id: Option.getOrUndefined(webhook), event_type: Option.getOrUndefined(event) }
    const keep = Effect.suspend(() => file === undefined ? Effect.void : writeState(file, state))
    const turn = Effect.gen(function* () {
      for (const { created_at, id } of yield* newSince(one, state, query)) {
        yield* handed(one, id, given ?? state.secret, target)
        state = tookOne(state, id, Date.parse(created_at))
        yield* keep
      }
    })
    yield* keep
    yield* Console.error(`listening for 127.0.0.1:${target.port}${target.path}; Ctrl-C ends`)
    if (given === null) yield* Console.error(`signed with the secret ${state.secret} (WEBHOOK_SECRET names another)`)
    // Ctrl-C is the only end of this command, and so no failure.
    yield* Effect.sync(() => void (process.exitCode = 0))
    return yield* Effect.forever(Effect.andThen(turn, Effect.sleep(pollInterval)))
  }),
).pipe(
  Command.withDescription("POSTs your account's deliveries to a local port as they are made (BAILIWICK_KEY)"),
  Command.withExamples([
    { command: cliCommand("listen 9000 --path /hooks"), description: "Deliveries from now on" },
    { command: cliCommand("listen 9000 --state listen.json"), description: "Go on where an earlier one ended" },
  ]),
)
