/**
 * The port to whatever holds the OIDC clients of projects (docs/identity.md). Two adapters: `embedded`, in
 * PostgreSQL, and `registration`, OAuth 2.0 Dynamic Client Registration with management (RFC 7591, RFC 7592).
 *
 * A write either happened (it returns), certainly did not (`refused`, `unavailable`), or nobody knows (`unknown`: cut off
 * or timed out after it may have arrived). Who calls saves `reference` first, so that a client of which nothing else is
 * known can be looked for.
 */
import { Context, type Effect, Redacted, Schema } from "effect"

/** What a client shall be: the members of RFC 7591 that we decide. Compared member by member for drift. */
export interface ClientTarget {
  readonly client_name: string
  readonly redirect_uris: ReadonlyArray<string>
  readonly post_logout_redirect_uris: ReadonlyArray<string>
  readonly backchannel_logout_uri: string | null
  readonly grant_types: ReadonlyArray<string>
  readonly response_types: ReadonlyArray<string>
  readonly scope: string
  readonly token_endpoint_auth_method: string
  /** Our reference: what shows an operator whose client it is. */
  readonly software_id: string
}

/** Whatever the provider says of a client, of the members above. */
export type Observed = Readonly<Record<string, unknown>>

/** A client that exists, and how it is managed (RFC 7592). */
export interface KnownClient {
  readonly clientId: string
  readonly managementUri: string | null
  readonly managementToken: Redacted.Redacted | null
}

/** A client and what the provider says of it. A provider may hand out a new management credential with any answer. */
export interface Seen {
  readonly client: KnownClient
  readonly observed: Observed
}

export class ProviderFault extends Schema.TaggedError<ProviderFault>()("ProviderFault", {
  /** `refused`: for good. `unavailable`: it did not arrive, later it may. `unknown`: it may have been done. */
  reason: Schema.Literals(["refused", "unavailable", "unknown"]),
  /** A code for the operator: no body, no secret. */
  code: Schema.String,
}) {}

/** The code of a refusal that is our own: the provider never said where the client is managed. */
export const unmanaged = "client_is_not_managed"

export class IdentityProvider extends Context.Service<IdentityProvider, {
  /** Makes a client that can be found by its reference, the target's `software_id`. */
  readonly create: (target: ClientTarget) => Effect.Effect<Seen, ProviderFault>
  /** Makes a client what it shall be; repeating it is harmless. */
  readonly update: (client: KnownClient, target: ClientTarget) => Effect.Effect<Seen, ProviderFault>
  /** Ends a client; repeating it is harmless. */
  readonly disable: (client: KnownClient) => Effect.Effect<void, ProviderFault>
  /** What the provider holds, or null where it holds no such client, or a disabled one. */
  readonly read: (client: KnownClient) => Effect.Effect<Seen | null, ProviderFault>
  /** The client of a reference, null where there certainly is none, `unfindable` where this provider cannot be asked. */
  readonly find: (reference: string) => Effect.Effect<KnownClient | null | "unfindable", ProviderFault>
  /** Whether a URI that a person names may be one of this provider's: no other is asked, nor given a credential. */
  readonly manages: (uri: string) => boolean
}>()("bailiwick/services/projects/IdentityProvider") {}
