/**
 * Poll-based delivery (RFC 8936): a receiver fetches the events of its stream. Each request checks its grants again.
 */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { StreamPolling, StreamSets } from "../identity/Polling.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { CapabilityRequired } from "../problems/StreamProblems.ts"
import { answerHeader } from "./AnswerHeader.ts"
import { PlainFloor, SecretRequest } from "./RequestValidation.ts"
import { Consuming, Follows } from "./LifecycleApi.ts"
import { Id } from "../Wire.ts"

const challenged = answerHeader(403, "WWW-Authenticate", "RFC 6750: `insufficient_scope`.")

export class StreamPollApi extends HttpApiGroup.make("lifecycle-poll")
  .add(
    HttpApiEndpoint.post("pollStream", "/v1/lifecycle/streams/:stream_id/poll", {
      params: { stream_id: Id },
      payload: StreamPolling,
      success: StreamSets,
      error: [NotFound, CapabilityRequired],
    }).annotate(OpenApi.Summary, "Acknowledge events that were taken, and fetch the next ones")
      .annotate(OpenApi.Transform, challenged)
      .annotate(Follows, true),
  )
  .middleware(PlainFloor)
  .middleware(Consuming)
  .annotate(SecretRequest, true)
  .annotateMerge(
    OpenApi.annotations({ title: "Lifecycle delivery", description: "Security event tokens by polling (RFC 8936)." }),
  ) {}
