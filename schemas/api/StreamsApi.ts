/**
 * Streams of the Shared Signals Framework 1.0 (section 8.1), by its rules: bodies may hold unknown members, and an
 * invalid request is a 400. For services whose grant has `stream.manage`, which each request checks again.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  push,
  StreamChange,
  StreamConfiguration,
  StreamCreation,
  StreamState,
  SubjectAddition,
  SubjectRemoval,
  TransmitterConfiguration,
  VerificationRequest,
} from "../identity/StreamBodies.ts"
import { NotFound, RateLimited } from "../problems/HttpProblems.ts"
import { Held } from "../problems/IdentityProblems.ts"
import * as Problems from "../problems/StreamProblems.ts"
import { answerHeader } from "./AnswerHeader.ts"
import { CalledAddresses, PlainFloor, RequestValidation, SecretRequest } from "./RequestValidation.ts"
import { Consuming } from "./LifecycleApi.ts"
import { Id } from "../Wire.ts"

const streams = "/v1/lifecycle/streams"
const which = { stream_id: Id }
// Without these the colon in a path would begin a parameter.
const params = {}

/** The address of a push; the address of a poll is the transmitter's own. */
const called = (body: unknown) => {
  const { endpoint_url: url, method } = Object(Object(body).delivery)
  return method === push ? [{ loc: ["delivery", push, "endpoint_url"], url }] : []
}
const challenged = answerHeader(403, "WWW-Authenticate", "RFC 6750: `insufficient_scope`.")
const unseen = [NotFound, Problems.CapabilityRequired] as const

export class StreamsApi extends HttpApiGroup.make("lifecycle-streams")
  .add(
    HttpApiEndpoint.post("createStream", streams, {
      payload: StreamCreation,
      success: StreamConfiguration.pipe(HttpApiSchema.status(201)),
      error: [
        Problems.AudienceRequired,
        Problems.SuppliedMismatch,
        Problems.CapabilityRequired,
        Problems.StreamLimit,
        Held,
      ],
    }).annotate(OpenApi.Summary, "A new stream of a project's events, by push, or by default by poll")
      .annotate(CalledAddresses, called)
      .annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.get("readStreams", streams, {
      query: { stream_id: Schema.optionalKey(Id) },
      success: Schema.Union([StreamConfiguration, Schema.Array(StreamConfiguration)]),
      error: unseen,
    }).annotate(OpenApi.Summary, "The named stream, or a list of the receiver's streams")
      .annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.patch("updateStream", streams, {
      payload: StreamChange,
      success: StreamConfiguration,
      error: [...unseen, Problems.SuppliedMismatch, Held],
    }).annotate(OpenApi.Summary, "Change the fields of a stream's configuration that are sent")
      .annotate(CalledAddresses, called)
      .annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.put("replaceStream", streams, {
      payload: StreamChange,
      success: StreamConfiguration,
      error: [...unseen, Problems.SuppliedMismatch, Held],
    }).annotate(OpenApi.Summary, "Replace a stream's configuration: fields that are not sent are deleted")
      .annotate(CalledAddresses, called)
      .annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.delete("deleteStream", streams, {
      query: which,
      success: HttpApiSchema.NoContent,
      error: unseen,
    }).annotate(OpenApi.Summary, "End a stream").annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.get("readStreamStatus", "/v1/lifecycle/status", {
      query: which,
      success: StreamState,
      error: unseen,
    }).annotate(OpenApi.Summary, "A stream's status").annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.post("updateStreamStatus", "/v1/lifecycle/status", {
      payload: StreamState,
      success: StreamState,
      error: [...unseen, Held],
    }).annotate(OpenApi.Summary, "Enable a stream, pause it (events are held) or disable it (they are dropped)")
      .annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.post("verifyStream", "/v1/lifecycle/verify", {
      payload: VerificationRequest,
      success: HttpApiSchema.NoContent,
      error: [...unseen, RateLimited],
    }).annotate(OpenApi.Summary, "Have a verification event sent over a stream").annotate(
      OpenApi.Transform,
      challenged,
    ),
    HttpApiEndpoint.post("addStreamSubject", "/v1/lifecycle/subjects:add", {
      params,
      payload: SubjectAddition,
      success: HttpApiSchema.Empty(200),
      error: [...unseen, Problems.SubjectLimit],
    }).annotate(OpenApi.Summary, "Include a subject again; the answer does not show whether it is known")
      .annotate(OpenApi.Transform, challenged),
    HttpApiEndpoint.post("removeStreamSubject", "/v1/lifecycle/subjects:remove", {
      params,
      payload: SubjectRemoval,
      success: HttpApiSchema.NoContent,
      error: [...unseen, Problems.SubjectLimit],
    }).annotate(OpenApi.Summary, "Leave a subject's events out").annotate(OpenApi.Transform, challenged),
  )
  .middleware(PlainFloor)
  .middleware(Consuming)
  .annotate(SecretRequest, true)
  .annotateMerge(
    OpenApi.annotations({
      title: "Lifecycle streams",
      description: "Security event streams by the Shared Signals Framework 1.0.",
    }),
  ) {}

export class StreamDiscoveryApi extends HttpApiGroup.make("lifecycle-discovery")
  .add(
    HttpApiEndpoint.get("ssfConfiguration", "/.well-known/ssf-configuration/lifecycle", {
      success: TransmitterConfiguration,
    }).annotate(OpenApi.Summary, "What the transmitter can do, and where (Shared Signals Framework 1.0, 7)"),
  )
  .middleware(RequestValidation)
  .annotateMerge(OpenApi.annotations({ title: "Lifecycle discovery", description: "The transmitter's metadata." })) {}
