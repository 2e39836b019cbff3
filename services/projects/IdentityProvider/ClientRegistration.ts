/**
 * A provider behind OAuth 2.0 Dynamic Client Registration (RFC 7591) and its management protocol (RFC 7592).
 *
 * The reference is sent as `software_id`. RFC 7591 has no search, so the program cannot find a client again whose
 * creation's answer was lost: `find` returns `unfindable`, and an operator looks at the provider. Updates and deletions
 * name their client and can be repeated.
 */
import { Effect, Layer, Redacted, Schema } from "effect"
import { Outbound, OutboundError } from "../../platform/Outbound.ts"
import { type ClientTarget, IdentityProvider, type KnownClient, ProviderFault, unmanaged } from "../IdentityProvider.ts"

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

/** The fault of a lost request: before a connection was made nothing was done, and a read changes nothing anyway. */
const lost = (writes: boolean) => ({ reason }: OutboundError): ProviderFault =>
  new ProviderFault({
    reason: writes && !["dns", "connect", "tls", "blocked_address"].includes(reason) ? "unknown" : "unavailable",
    code: reason,
  })

/** Statuses that only say to come back later, or where to go instead: nothing was done. */
const later = [408, 429, 503]
const elsewhere = [307, 308]

/**
 * The fault of an answer. A write was refused where the status says so; with any other (202, 303, 500) it may be done.
 */
const refusal = (status: number, writes: boolean): ProviderFault => {
  const refused = status >= 400 && status < 500 || elsewhere.includes(status)
  const otherwise = writes ? "unknown" : status >= 500 ? "unavailable" : "refused"
  return new ProviderFault({
    reason: later.includes(status) ? "unavailable" : refused ? "refused" : otherwise,
    code: `status_${status}`,
  })
}

/** The target as it is sent: empty members are left out, since a member that is present sets a value. */
const wire = ({ backchannel_logout_uri, scope, ...target }: ClientTarget) => ({
  ...target,
  ...(scope === "" ? {} : { scope }),
  ...(backchannel_logout_uri === null ? {} : { backchannel_logout_uri }),
})

/** The deadline of one call, independent of the one for webhooks. The lease of the job lasts longer. */
const deadline = "10 seconds"

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
        const sayable = token === null || /^[\x21-\x7e]+$/.test(Redacted.value(token))
        if (!sayable || !/^https?:/.test(URL.parse(url)?.protocol ?? "")) {
          return yield* new ProviderFault({ reason: "refused", code: "unusable_management" })
        }
        const asked = outbound.ask(url, {
          trusted: true,
          method,
          headers: {
            accept: "application/json",
            ...(body === undefined ? {} : { "content-type": "application/json" }),
            ...(token === null ? {} : { authorization: `Bearer ${Redacted.value(token)}` }),
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        const { body: bytes, status } = yield* asked.pipe(
          Effect.timeoutOrElse({
            duration: deadline,
            orElse: () => Effect.fail(new OutboundError({ reason: "timeout", host: "" })),
          }),
          Effect.mapError(lost(writes)),
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
          ? Effect.fail(new ProviderFault({ reason: "refused", code: unmanaged }))
          : Effect.succeed({ uri: client.managementUri, token: client.managementToken })

      const update = Effect.fn("Registration.update")(function* (client: KnownClient, target: ClientTarget) {
        const { token, uri } = yield* managed(client)
        const { status, text } = yield* ask("PUT", uri, token, { ...wire(target), client_id: client.clientId })
        if (status !== 200) return yield* refusal(status, true)
        const answer = yield* registered(text)
        if (answer.client_id !== client.clientId) {
          return yield* new ProviderFault({ reason: "unknown", code: "another_client" })
        }
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
        return answer.client_id === client.clientId ? { client: clientOf(answer, client), observed: answer } : null
      })

      const { origin } = new URL(registrationEndpoint)
      return IdentityProvider.of({
        create,
        update,
        disable,
        read,
        find: () => Effect.succeed("unfindable" as const),
        manages: (uri) => URL.parse(uri)?.origin === origin,
      })
    }),
  )
