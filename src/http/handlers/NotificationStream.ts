/**
 * The answer of `GET /v1/notifications/stream`: Server-Sent Events until the client disconnects or its credential ends.
 */
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Principal, sessionCookie } from "../../../schemas/api/CredentialsApi.ts"
import { Live } from "../../../services/notifications/Live.ts"
import { eventStream } from "../edge/StreamingResponse.ts"

export const notificationStream = Effect.fnUntraced(function* (lastEventId: string | undefined) {
  const { open } = yield* Live
  const { accountId } = yield* Principal
  const { cookies, headers: sent } = yield* HttpServerRequest.HttpServerRequest
  const outlet = yield* open({
    accountId,
    lastEventId,
    sent: { authorization: sent["authorization"], cookie: cookies[sessionCookie] },
  })
  return eventStream(outlet)
})
