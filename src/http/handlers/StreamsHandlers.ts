/** Handlers of the Shared Signals Framework's endpoints. */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Consumer } from "../../../schemas/api/LifecycleApi.ts"
import { StreamDiscoveryApi, StreamsApi } from "../../../schemas/api/StreamsApi.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { transmitterConfiguration } from "../../../services/event-streams/Streams/StreamJson.ts"

const Api = HttpApi.make("bailiwick").add(StreamsApi)
const DiscoveryApi = HttpApi.make("bailiwick").add(StreamDiscoveryApi)

const streamsGroup = HttpApiBuilder.group(
  Api,
  "lifecycle-streams",
  Effect.fn(function* (handlers) {
    const streams = yield* Streams
    return handlers.handleAll({
      createStream: Effect.fnUntraced(function* ({ payload }) {
        return yield* streams.create(yield* Consumer, payload)
      }),
      readStreams: Effect.fnUntraced(function* ({ query }) {
        const receiver = yield* Consumer
        return yield* query.stream_id === undefined ? streams.list(receiver) : streams.read(receiver, query.stream_id)
      }),
      updateStream: Effect.fnUntraced(function* ({ payload }) {
        return yield* streams.change(yield* Consumer, "update", payload)
      }),
      replaceStream: Effect.fnUntraced(function* ({ payload }) {
        return yield* streams.change(yield* Consumer, "replace", payload)
      }),
      deleteStream: Effect.fnUntraced(function* ({ query }) {
        yield* streams.remove(yield* Consumer, query.stream_id)
      }),
      readStreamStatus: Effect.fnUntraced(function* ({ query }) {
        return yield* streams.status(yield* Consumer, query.stream_id)
      }),
      updateStreamStatus: Effect.fnUntraced(function* ({ payload }) {
        return yield* streams.setStatus(yield* Consumer, payload)
      }),
      verifyStream: Effect.fnUntraced(function* ({ payload }) {
        yield* streams.verify(yield* Consumer, payload)
      }),
      addStreamSubject: Effect.fnUntraced(function* ({ payload }) {
        yield* streams.say(yield* Consumer, payload.stream_id, payload.subject, true)
      }),
      removeStreamSubject: Effect.fnUntraced(function* ({ payload }) {
        yield* streams.say(yield* Consumer, payload.stream_id, payload.subject, false)
      }),
    })
  }),
)

const discoveryGroup = (publicUrl: URL) =>
  HttpApiBuilder.group(DiscoveryApi, "lifecycle-discovery", (handlers) =>
    handlers.handleAll({
      ssfConfiguration: () =>
        Effect.succeed(
          HttpServerResponse.jsonUnsafe(transmitterConfiguration(publicUrl), {
            headers: { "cache-control": "public, max-age=60" },
          }),
        ),
    }))

export const streams = (publicUrl: URL) => Layer.merge(streamsGroup, discoveryGroup(publicUrl))
