/**
 * The port to the identity provider that holds the OIDC clients of projects (docs/identity.md). Two adapters:
 * `embedded`, in PostgreSQL, and `registration`, OAuth 2.0 Dynamic Client Registration with management (RFC 7591, RFC
 * 7592).
 *
 * A write has happened (it returns), certainly has not (`refused`, `unavailable`), or that is not known (`unknown`: cut
 * off or timed out after it may have arrived). The caller saves the `reference` first, so that a client whose id is not
 * known can be looked for.
 */
import { Context, type Effect, Redacted, Schema } from "effect"

/**
 * The wanted state of a client: the members of RFC 7591 that this program sets. Compared member by member for drift.
 */
export interface ClientTarget {
  readonly client_name: string
  readonly redirect_uris: ReadonlyArray<string>
  readonly post_logout_redirect_uris: ReadonlyArray<string>
  readonly backchannel_logout_uri: string | null
  readonly grant_types: ReadonlyArray<string>
  readonly response_types: ReadonlyArray<string>
  readonly scope: string
  readonly token_endpoint_auth_method: string
  /** The reference, which shows an operator to which project the client belongs. */
  readonly software_id: string
}

/** The provider's values of the members above, as far as it tells them. */
export type Observed = Readonly<Record<string, unknown>>

/** A client that exists, and how it is managed (RFC 7592). */
export interface KnownClient {
  readonly clientId: string
  readonly managementUri: string | null
  readonly managementToken: Redacted.Redacted | null
}

/** A client and its state at the provider. A provider may hand out a new management credential with any answer. */
export interface Seen {
  readonly client: KnownClient
  readonly observed: Observed
}

export class ProviderFault extends Schema.TaggedError<ProviderFault>()("ProviderFault", {
  /** `refused`: for good. `unavailable`: not done, and may succeed later. `unknown`: it may have been done. */
  reason: Schema.Literals(["refused", "unavailable", "unknown"]),
  /** A code for the operator: no body, no secret. */
  code: Schema.String,
}) {}

/** The code of a refusal by this program: the provider never told where the client is managed. */
export const unmanaged = "client_is_not_managed"

export class IdentityProvider extends Context.Service<IdentityProvider, {
  /** Makes a client that `find` can find by its reference, the target's `software_id`. */
  readonly create: (target: ClientTarget) => Effect.Effect<Seen, ProviderFault>
  /** Sets a client to its target; may be repeated. */
  readonly update: (client: KnownClient, target: ClientTarget) => Effect.Effect<Seen, ProviderFault>
  /** Ends a client; may be repeated. */
  readonly disable: (client: KnownClient) => Effect.Effect<void, ProviderFault>
  /** Reads a client; null where the provider has no such client, or a disabled one. */
  readonly read: (client: KnownClient) => Effect.Effect<Seen | null, ProviderFault>
  /** The client of a reference, null where there certainly is none, `unfindable` where this provider has no search. */
  readonly find: (reference: string) => Effect.Effect<KnownClient | null | "unfindable", ProviderFault>
  /** Whether a URI that a person names may belong to this provider: no request or credential goes to any other URI. */
  readonly manages: (uri: string) => boolean
}>()("bailiwick/services/projects/IdentityProvider") {}
