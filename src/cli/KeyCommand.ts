/** `keys`: lets an operator rotate the keys that sign lifecycle messages. A transition goes on by itself. */
import { Clock, Console, Duration, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { KeyRefused, KeyRotation } from "../../services/lifecycle/KeyRotation.ts"
import type { Standings, TransitionStanding } from "../../services/lifecycle/KeyRotation.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { ringView } from "../../services/operations/OperatorKeys.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { CliFault } from "./CliFault.ts"
import { busIfKnown, database, instance, vault } from "./Instance.ts"
import { asFlag, operatorNamed } from "./OperatorName.ts"
import { printable, printableJson } from "./EscapeControls.ts"
import { jsonFlag } from "./JsonFlag.ts"
import { durationFlag } from "./Times.ts"

const services = Layer.unwrap(Effect.map(
  instance,
  ({ config }) => KeyRotation.layer({ deadlineMillis: config.keyTransitionDeadline }),
)).pipe(
  Layer.provide(Layer.merge(EventLog.layer, SigningKeys.layer)),
  Layer.provide(vault),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(busIfKnown),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(database),
)

const asked = <A, E, R>(command: Effect.Effect<A, E | KeyRefused, R>) =>
  Effect.catchIf(
    command,
    (error): error is KeyRefused => error instanceof KeyRefused,
    ({ message }) => Effect.fail(new CliFault({ message })),
  )

/** The same, done by the operator that the command names. */
const named = <A, E, R>(as: Option.Option<string>, command: Effect.Effect<A, E | KeyRefused, R>) =>
  Effect.provideService(asked(command), CurrentOperator, operatorNamed(as))

/** Advances the rotation before the command ends, as a running instance would within seconds. */
const advanced = Effect.flatMap(KeyRotation, ({ advance }) => Effect.repeat(advance, { while: (more) => more }))

const transitionLines = (transition: TransitionStanding): ReadonlyArray<string> => {
  const { deadlineAt, left, notBefore, successor, switched, untold, waiting } = transition
  const told = untold === 0 ? "" : `, ${untold} not informed yet`
  return [
    `transition to ${successor}: not before ${notBefore.toISOString()}, waits until ${deadlineAt.toISOString()}`,
    `  ${switched} projects switched, ${left} to go${told}`,
    ...waiting.map(({ consumers, projectId }) => `  ${projectId} waits for ${consumers.join(", ")}`),
  ]
}

/** The same, a line a key: its place among the pins for a new product, from 1, and the transition on its successor's line. */
const jsonOf = (found: Standings): ReadonlyArray<object> => {
  const { items, pins, transition } = ringView(found)
  return items.map((key) => ({
    ...key,
    pin: pins.includes(key.kid) ? pins.indexOf(key.kid) + 1 : null,
    transition: transition?.successor === key.kid ? transition : null,
  }))
}

const table = Effect.fnUntraced(function* (json: boolean) {
  const found = yield* (yield* KeyRotation).list
  if (json) return yield* Effect.forEach(jsonOf(found), (key) => Console.log(printableJson(key)), { discard: true })
  const { keys, pins, transition } = found
  if (keys.length === 0) return yield* Console.error("no keys yet: the first message makes them")
  yield* Console.log(`${"kid".padEnd(43)} ${"state".padEnd(11)} ${"since".padEnd(24)} projects`)
  for (const { kid, projects, since, state } of keys) {
    yield* Console.log(`${kid} ${state.padEnd(11)} ${since.toISOString()} ${projects}`)
  }
  yield* Console.log(`pins for a new product: ${pins.join(",")}`)
  for (const line of transition === null ? [] : transitionLines(transition)) yield* Console.log(printable(line))
})

const list = Command.make(
  "list",
  { json: jsonFlag },
  Effect.fn("cli.keys.list")(({ json }) => table(json), Effect.provide(services)),
).pipe(
  Command.withDescription(
    "Lists keys in the order of their use, the pins for a new product, and the consumers that a transition waits for",
  ),
)

const announce = Command.make(
  "announce",
  {
    as: asFlag,
    in: durationFlag("in").pipe(
      Flag.withDescription("How long from now no project switches yet (default 1d)"),
      Flag.optional,
    ),
  },
  Effect.fn("cli.keys.announce")(function* ({ as, in: within }) {
    const delay = Option.match(within, { onNone: () => 86_400_000, onSome: (duration) => Duration.toMillis(duration) })
    const kid = yield* named(as, (yield* KeyRotation).announce((yield* Clock.currentTimeMillis) + delay))
    yield* advanced
    yield* Console.log(`${kid} announced`)
    yield* table(false)
  }, Effect.provide(services)),
).pipe(Command.withDescription("Begins a transition to the next key and informs every project"))

const publish = Command.make(
  "publish",
  { as: asFlag },
  Effect.fn("cli.keys.publish")(function* ({ as }) {
    yield* Console.log(`${yield* named(as, (yield* KeyRotation).publish())} published`)
  }, Effect.provide(services)),
).pipe(Command.withDescription("Puts the announced key into the key set before every project has been informed"))

const activate = Command.make(
  "activate",
  {
    as: asFlag,
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Waits for no consumer: those that are late need a snapshot"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn("cli.keys.activate")(function* ({ as, force }) {
    const kid = yield* named(as, (yield* KeyRotation).activate({ force }))
    yield* advanced
    yield* Console.log(`${kid} signs for every project whose consumers know it`)
    yield* table(false)
  }, Effect.provide(services)),
).pipe(Command.withDescription("Lets projects switch to the announced key from now on"))

const kidArgument = Argument.String("KID").pipe(Argument.withDescription("The key's thumbprint, as listed"))

const retire = Command.make(
  "retire",
  { as: asFlag, kid: kidArgument },
  Effect.fn("cli.keys.retire")(function* ({ as, kid }) {
    yield* named(as, (yield* KeyRotation).retire(kid))
    yield* Console.log(`${printable(kid)} retired: its private key is gone`)
  }, Effect.provide(services)),
).pipe(Command.withDescription("Ends a key that has verified long enough; that happens by itself, too"))

const compromise = Command.make(
  "compromise",
  {
    as: asFlag,
    kid: kidArgument,
    reason: Flag.String("reason").pipe(
      Flag.withDescription("Why, for the audit: 8 to 500 characters"),
      Flag.filter((text) => [...text].length >= 8 && [...text].length <= 500, () => "a reason of 8 to 500 characters"),
    ),
  },
  Effect.fn("cli.keys.compromise")(function* ({ as, kid, reason }) {
    const active = yield* named(as, (yield* KeyRotation).compromise(kid, reason))
    yield* advanced
    yield* Console.log(`${printable(kid)} is out of use, ${active} is active`)
    yield* table(false)
  }, Effect.provide(services)),
).pipe(
  Command.withDescription("Takes a stolen key out of use at once; every consumer of its messages needs a snapshot"),
)

export const keys = Command.make("keys").pipe(
  Command.withDescription("The keys that lifecycle messages are signed with"),
  Command.withSubcommands([list, announce, publish, activate, retire, compromise]),
)
