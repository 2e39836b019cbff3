/** Posts due Slack messages. Mail has its own worker, so neither delays the other. */
import { Effect, Layer } from "effect"
import { SlackMessages, slackTopic } from "../../services/notifications/SlackMessages.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { every, loop, sideBySide } from "./Loop.ts"

/** Batches in flight. An account that does not answer keeps its batch for as long as one post may take. */
const posting = 3

export const SlackSender = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const bells = yield* WakeUps
    const clocks = yield* ClockHealth
    const slack = yield* SlackMessages
    const turn = Effect.flatMap(clocks.read, ({ healthy }) => healthy ? slack.work : Effect.succeed(false))

    const posts = Effect.flatMap(bells.bell(slackTopic), (bell) => loop("slack", bell, 1_000, turn))
    yield* sideBySide(Effect.replicateEffect(posts, posting))
    yield* every("slack's claims", 5_000, slack.free)
    yield* every("slack's past", 3_600_000, slack.prune)
  })),
}
