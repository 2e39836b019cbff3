/** The handler of polls on an event stream. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Consumer } from "../../../schemas/api/LifecycleApi.ts"
import { StreamPollApi } from "../../../schemas/api/StreamPollApi.ts"
import { mostSets, StreamDelivery } from "../../../services/event-streams/StreamDelivery.ts"

const Api = HttpApi.make("bailiwick").add(StreamPollApi)

const waitMillis = 30_000

export const streamPoll = HttpApiBuilder.group(
  Api,
  "lifecycle-poll",
  Effect.fn(function* (handlers) {
    const { poll } = yield* StreamDelivery
    return handlers.handleAll({
      pollStream: Effect.fnUntraced(function* ({ params, payload }) {
        const body = yield* poll({
          ...(yield* Consumer),
          streamId: params.stream_id,
          maxEvents: Math.min(payload.maxEvents ?? mostSets, mostSets),
          waitMillis: payload.returnImmediately === true ? 0 : waitMillis,
          ack: payload.ack ?? [],
          setErrs: payload.setErrs ?? {},
        }).pipe(Effect.catchTag("SqlError", Effect.die))
        return HttpServerResponse.text(body, { contentType: "application/json" })
      }),
    })
  }),
)
