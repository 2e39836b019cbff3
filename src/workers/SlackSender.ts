/** Posts due Slack messages. Mail has its own worker, so neither delays the other. */
import { Effect, Layer } from "effect"
import { SlackMessages, slackTopic } from "../../services/notifications/SlackMessages.ts"
import { sending } from "./OutgoingLoops.ts"

/** Batches in flight. An account that does not answer keeps its batch for as long as one post may take. */
const batches = 3

export const SlackSender = {
  layer: Layer.effectDiscard(
    Effect.flatMap(
      SlackMessages,
      (slack) => sending(slack, { names: ["slack", "slack's claims", "slack's past"], topic: slackTopic, batches }),
    ),
  ),
}
