/**
 * The answer of `GET /v1/notifications/stream`: Server-Sent Events until the client disconnects or its credential ends.
 */
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Principal } from "../../../schemas/api/CredentialsApi.ts"
import { Live } from "../../../services/notifications/Live.ts"
import { presentAgain } from "../auth/AccountAuth.ts"
import { eventStream } from "../edge/StreamingResponse.ts"

export const notificationStream = Effect.gen(function* () {
  const { open } = yield* Live
  const again = yield* presentAgain
  return Effect.fnUntraced(function* (lastEventId: string | undefined) {
    const { accountId } = yield* Principal
    const credential = again(yield* HttpServerRequest.HttpServerRequest)
    return eventStream(yield* open({ accountId, lastEventId, credential }))
  })
})
