/**
 * `POST /signals/events`: security events that identity providers push (RFC 8935). The bearer token tells which of the
 * configured transmitters it is, and the token that is pushed has to be that one's. No part of the API's document.
 */
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createHash } from "node:crypto"
import { UnsupportedMediaType } from "../../../schemas/problems/HttpProblems.ts"
import type { Transmitter } from "../../../services/signals/ConfiguredTransmitter.ts"
import type { SetRefusal } from "../../../services/signals/SignalDecision.ts"
import { SignalReceiver } from "../../../services/signals/SignalReceiver.ts"
import { countRefused } from "../../../services/signals/SignalRefusals.ts"
import { readText } from "../edge/Body.ts"
import { respond } from "../edge/ErrorMapping.ts"
import { mediaTypeOf } from "../edge/MediaTypes.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { refusing } from "../edge/RequestOutcome.ts"

export const signalsPath = "/signals/events"

const bearer = /^bearer +(\S+)$/i

/** Tokens are found by their digest: how long it takes tells nothing of them. */
const digestOf = (token: string) => createHash("sha256").update(token).digest("hex")

const unauthenticated: SetRefusal = {
  kind: "refuse",
  err: "authentication_failed",
  description: "the bearer token is no transmitter's",
}

const unreadable = (description = "the body cannot be read"): SetRefusal => ({
  kind: "refuse",
  err: "invalid_request",
  description,
})

const refused = ({ description, err }: SetRefusal) =>
  refusing(
    err,
    HttpServerResponse.jsonUnsafe({ err, description }, {
      status: 400,
      headers: { "content-language": "en", "cache-control": "no-store" },
    }),
  )

export const layer = (transmitters: ReadonlyArray<Transmitter>) => {
  const byDigest = new Map(
    transmitters.flatMap((transmitter) =>
      transmitter.pushToken === null ? [] : [[digestOf(Redacted.value(transmitter.pushToken)), transmitter] as const]
    ),
  )
  return Layer.unwrap(Effect.map(SignalReceiver, ({ receive }) =>
    HttpRouter.add(
      "POST",
      signalsPath,
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { authorization, "content-type": type } = request.headers
        const presented = bearer.exec(authorization ?? "")?.[1]
        const transmitter = presented === undefined ? undefined : byDigest.get(digestOf(presented))
        if (transmitter === undefined) {
          yield* countRefused(unauthenticated.err)
          return yield* refused(unauthenticated)
        }
        yield* actsAs(`transmitter:${transmitter.issuer}`)
        if (mediaTypeOf(type) !== "application/secevent+jwt") return yield* respond(new UnsupportedMediaType({}))
        return yield* readText(request).pipe(
          Effect.flatMap((text) => receive(transmitter, text.trim())),
          Effect.catchTag("MalformedRequest", ({ detail }) => Effect.succeed(unreadable(detail))),
          Effect.flatMap((received) =>
            received.kind === "refuse" ? refused(received) : Effect.succeed(HttpServerResponse.empty({ status: 202 }))
          ),
        )
      }),
    )))
}
