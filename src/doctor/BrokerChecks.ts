/** Checks the broker. Connecting makes missing streams, as every instance does. */
import { Effect, Redacted, Result } from "effect"
import { streamNames } from "../../schemas/bus/BusStreams.ts"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { ask } from "../embedded/NatsProbe.ts"
import { addressOf } from "../ServerAddress.ts"
import { fail, ok, warn } from "./Finding.ts"

/** Older brokers lose acknowledged messages by faults that were fixed since. */
const soundVersion = "2.10.27"

/** Whether version `a` is older than `b`; what follows a hyphen does not count. */
export const isOlder = (a: string, b: string): boolean => {
  const numbers = (version: string) => version.split("-", 1)[0]!.split(".").map((part) => Number(part) || 0)
  const [left, right] = [numbers(a), numbers(b)]
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

const deadlineMillis = 3_000

/** The first version with `sync_interval: always`: older ones sync what they acknowledged every two minutes. */
const syncsSince = "2.10"

/** The loss at a power failure of the broker. A client cannot see whether a server syncs each message. */
export const replicasFound = (least: number, version: string) => {
  if (least > 1) return ok("replicas", `${least} servers keep each stream`)
  const lost =
    "a power failure loses the email events and directory messages of two minutes that no process had taken " +
    "(PostgreSQL has everything else)"
  const remedy = "three servers and NATS_REPLICAS=3"
  return isOlder(version, syncsSince)
    ? warn(
      "replicas",
      `one server keeps each stream and cannot sync each message: ${lost}`,
      `${remedy}, or 2.10 or newer`,
    )
    : ok("replicas", `one server keeps each stream: without its sync_interval: always, ${lost}`)
}

/** Whether no server answers, but one of them accepts connections. */
const isSilent = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const servers = Redacted.value(url).split(",").flatMap((text) => URL.parse(text.trim()) ?? [])
  const answers = yield* Effect.forEach(
    servers,
    ({ hostname, port }) => ask({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 4222), deadlineMillis }),
    {
      concurrency: "unbounded",
    },
  )
  return !answers.includes("answers") && answers.includes("silent")
})

export const brokerChecks = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const address = addressOf(url)
    const bus = yield* Bus
    const healed = yield* Effect.result(bus.heal)
    const version = yield* bus.serverVersion
    if (version === null && (yield* isSilent(url))) {
      return [
        fail(
          "broker",
          `the server at ${address} accepts connections but does not answer`,
          "look at its disk and its log, and restart it",
        ),
      ]
    }
    if (version === null) {
      return [
        fail(
          "broker",
          `no server answers at ${address}`,
          "start nats-server there, or correct NATS_URL and NATS_CREDS",
        ),
      ]
    }
    const broker = isOlder(version, soundVersion)
      ? warn("broker", `nats-server ${version} may forget what it acknowledged`, `upgrade to ${soundVersion} or newer`)
      : ok("broker", `nats-server ${version}`)
    if (Result.isFailure(healed)) {
      return [
        broker,
        fail("streams", healed.failure.detail, "start nats-server with JetStream (-js), room and rights"),
      ]
    }
    const marks = yield* Effect.forEach(streamNames, (name) => Effect.result(bus.mark(name)), { concurrency: 4 })
    const missing = streamNames.filter((_, i) => Result.isFailure(marks[i]!))
    const least = Math.min(...marks.map((mark) => Result.isSuccess(mark) ? mark.success.replicas : Infinity))
    const messages = marks.reduce((sum, mark) => sum + (Result.isSuccess(mark) ? mark.success.lastSeq : 0), 0)
    return [
      broker,
      missing.length === 0
        ? ok("streams", `${streamNames.length} streams took ${messages} messages so far`)
        : fail("streams", `${missing.join(", ")} cannot be read`, "look at this user's rights on $JS.API"),
      ...(missing.length < streamNames.length ? [replicasFound(least, version)] : []),
    ]
  })
