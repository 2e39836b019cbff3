/**
 * A provider behind OAuth 2.0 Dynamic Client Registration (RFC 7591) and its management protocol (RFC 7592).
 *
 * Our reference goes along as `software_id`. RFC 7591 knows no search, so a create whose answer was lost cannot be found
 * again by us: `find` says so, and an operator looks at the provider. Updates and deletions name their client and can be
 * repeated.
 */
import { Effect, Layer, Redacted, Schema } from "effect"
import { Outbound, type OutboundError } from "../../platform/Outbound.ts"
import { type ClientTarget, IdentityProvider, type KnownClient, ProviderFault } from "../IdentityProvider.ts"

/** `IDENTITY_PROVIDER`, where it is not `embedded`. */
export interface Registration {
  readonly registrationEndpoint: string
  readonly initialAccessToken: Redacted.Redacted | null
}

const Registered = Schema.fromJsonString(Schema.StructWithRest(
  Schema.Struct({
    client_id: Schema.String,
    registration_client_uri: Schema.optionalKey(Schema.String),
    registration_access_token: Schema.optionalKey(Schema.String),
  }),
  [Schema.Record(Schema.String, Schema.Unknown)],
))
type Registered = typeof Registered.Type
const decode = Schema.decodeUnknownEffect(Registered)

/** Whatever ended before a connection stood has done nothing; a read does nothing anyway. */
const lost = (writes: boolean) => ({ reason }: OutboundError): ProviderFault =>
  new ProviderFault({
    reason: writes && !["dns", "connect", "tls", "blocked_address"].includes(reason) ? "unknown" : "unavailable",
    code: reason,
  })

const refusal = (status: number, writes: boolean): ProviderFault =>
  new ProviderFault({
    reason: status === 429 || status === 503
      ? "unavailable"
      : status >= 500 && writes
      ? "unknown"
      : status >= 500
      ? "unavailable"
      : "refused",
    code: `status_${status}`,
  })

const wire = ({ backchannel_logout_uri, ...target }: ClientTarget) => ({
  ...target,
  ...(backchannel_logout_uri === null ? {} : { backchannel_logout_uri }),
})

const unmanaged = new ProviderFault({ reason: "refused", code: "client_is_not_managed" })

export const registration = ({ initialAccessToken, registrationEndpoint }: Registration) =>
  Layer.effect(
    IdentityProvider,
    Effect.gen(function* () {
      const outbound = yield* Outbound

      const ask = Effect.fnUntraced(function* (
        method: "GET" | "POST" | "PUT" | "DELETE",
        url: string,
        token: Redacted.Redacted | null,
        body?: object,
      ) {
        const writes = method !== "GET"
        const { body: bytes, status } = yield* Effect.mapError(
          outbound.ask(url, {
            trusted: true,
            method,
            headers: {
              accept: "application/json",
              ...(body === undefined ? {} : { "content-type": "application/json" }),
              ...(token === null ? {} : { authorization: `Bearer ${Redacted.value(token)}` }),
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          }),
          lost(writes),
        )
        return { status, text: new TextDecoder().decode(bytes) }
      })

      const registered = (text: string) =>
        Effect.mapError(decode(text), () => new ProviderFault({ reason: "unknown", code: "unreadable_answer" }))

      const clientOf = (answer: Registered, before: KnownClient | null): KnownClient => ({
        clientId: answer.client_id,
        managementUri: answer.registration_client_uri ?? before?.managementUri ?? null,
        managementToken: answer.registration_access_token === undefined
          ? before?.managementToken ?? null
          : Redacted.make(answer.registration_access_token),
      })

      const create = Effect.fn("Registration.create")(function* (target: ClientTarget) {
        const { status, text } = yield* ask("POST", registrationEndpoint, initialAccessToken, wire(target))
        if (status !== 201 && status !== 200) return yield* refusal(status, true)
        const answer = yield* registered(text)
        return { client: clientOf(answer, null), observed: answer }
      })

      const managed = (client: KnownClient) =>
        client.managementUri === null
          ? Effect.fail(unmanaged)
          : Effect.succeed({ uri: client.managementUri, token: client.managementToken })

      const update = Effect.fn("Registration.update")(function* (client: KnownClient, target: ClientTarget) {
        const { token, uri } = yield* managed(client)
        const { status, text } = yield* ask("PUT", uri, token, { ...wire(target), client_id: client.clientId })
        if (status !== 200) return yield* refusal(status, true)
        const answer = yield* registered(text)
        return { client: clientOf(answer, client), observed: answer }
      })

      const disable = Effect.fn("Registration.disable")(function* (client: KnownClient) {
        const { token, uri } = yield* managed(client)
        const { status } = yield* ask("DELETE", uri, token)
        // RFC 7592 answers 401 for a client that is gone, and for a token that is not (any more) the client's: a client
        // that may still be there does not count as ended.
        if (status !== 204 && status !== 200 && status !== 404) return yield* refusal(status, true)
      })

      const read = Effect.fn("Registration.read")(function* (client: KnownClient) {
        const { token, uri } = yield* managed(client)
        const { status, text } = yield* ask("GET", uri, token)
        if (status === 404) return null
        if (status !== 200) return yield* refusal(status, false)
        const answer = yield* registered(text)
        return { client: clientOf(answer, client), observed: answer }
      })

      return IdentityProvider.of({ create, update, disable, read, find: () => Effect.succeed("unfindable" as const) })
    }),
  )
