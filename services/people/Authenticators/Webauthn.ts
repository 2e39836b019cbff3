/**
 * Registers passkeys and security keys (WebAuthn Level 3, 7.1), and verifies their signatures (7.2). No attestation is requested: the make of the
 * authenticator does not matter here. User verification does, since the authenticator counts as two factors.
 */
import { Effect } from "effect"
import { createHash, timingSafeEqual } from "node:crypto"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { AuthenticationResponse, UserVerification } from "../../../schemas/identity/Assertion.ts"
import type { ProofType, RegistrationResponse } from "../../../schemas/identity/CredentialAction.ts"

/** The relying party: the portal that people see, or the console. */
export interface RelyingParty {
  /** A domain: the credential is valid for it and its subdomains. */
  readonly id: string
  /** The origins that serve its pages. */
  readonly origins: ReadonlyArray<string>
}

/** Loaded at the first use: it is a fifth of the code that a start reads, and takes 20 MB of memory. */
const library = () => import("@simplewebauthn/server")

/**
 * Loads what a challenge or proof of this type needs. It is to run before a transaction begins: on a busy machine the
 * first load takes seconds, and PostgreSQL ends a transaction that is idle for five.
 */
export const loadFor = (proof: ProofType): Effect.Effect<void> =>
  proof === "webauthn.create" ? Effect.asVoid(Effect.promise(library)) : Effect.void

const loopback = new Set(["127.0.0.1", "[::1]", "localhost"])

/** The origins of a page at this URL: a loopback address is `localhost`, too. */
const originsOf = (page: URL): ReadonlyArray<string> => {
  if (!loopback.has(page.hostname)) return [page.origin]
  const local = new URL(page.origin)
  local.hostname = "localhost"
  return [local.origin, page.origin]
}

/**
 * The portal at this URL. A browser accepts no IP address as a domain; for its own machine it accepts `localhost`.
 * `own` serves the console, whose origin counts where browsers let it use the portal's domain.
 */
export const relyingPartyAt = (portal: URL, own: URL = portal): RelyingParty => {
  const id = loopback.has(portal.hostname) ? "localhost" : portal.hostname
  const also = originsOf(own).filter((origin) => {
    const { hostname } = new URL(origin)
    return hostname === id || hostname.endsWith(`.${id}`)
  })
  return { id, origins: [...new Set([...originsOf(portal), ...also])] }
}

/** EdDSA, ES256, RS256. */
const algorithms = [-8, -7, -257]

export interface NewUser {
  readonly personId: PersonId
  readonly name: string
  readonly displayName: string
}

/** Authenticators store the user id, so it must reveal nothing about the person. */
const userIdOf = (personId: PersonId) => new Uint8Array(createHash("sha256").update(personId).digest())

/** Options for `navigator.credentials.create()`, with a fresh challenge; `known` are credentials to exclude. */
export const creationOptions = (
  party: RelyingParty,
  user: NewUser,
  known: ReadonlyArray<{ readonly id: string; readonly transports: ReadonlyArray<string> }>,
) =>
  Effect.promise(async () =>
    (await library()).generateRegistrationOptions({
      rpName: "Bailiwick",
      rpID: party.id,
      userID: userIdOf(user.personId),
      userName: user.name,
      userDisplayName: user.displayName,
      timeout: 600_000,
      attestationType: "none",
      authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
      supportedAlgorithmIDs: algorithms,
      excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    })
  )

/** The longest credential id in bytes; a longer one is refused (WebAuthn Level 3, 7.1). */
const longestCredentialId = 1_023

export interface Registered {
  readonly kind: "passkey" | "security_key"
  readonly credentialId: string
  readonly publicKey: Uint8Array
  readonly signCount: number
  readonly aaguid: string
  readonly transports: ReadonlyArray<string>
  /** The authenticator is a part of the device that the browser runs on. */
  readonly platform: boolean
  readonly backupEligible: boolean
  readonly backupState: boolean
}

/**
 * Whether the portal's page was in a frame of another origin (7.1, `crossOrigin`), which the portal itself never does.
 */
const isFramed = ({ response }: { readonly response: { readonly clientDataJSON: string } }): boolean =>
  JSON.parse(Buffer.from(response.clientDataJSON, "base64url").toString("utf8")).crossOrigin === true

const isDiscoverable = ({ clientExtensionResults: results }: RegistrationResponse): boolean => {
  const properties = results?.["credProps"]
  return typeof properties === "object" && properties !== null && Reflect.get(properties, "rk") === true
}

/** The credential that a browser registered for the challenge, or null where the response is not valid. */
export const registered = (party: RelyingParty, challenge: string, response: RegistrationResponse) =>
  Effect.tryPromise(async () =>
    (await library()).verifyRegistrationResponse({
      response: {
        id: response.id,
        rawId: response.rawId,
        type: "public-key",
        response: {
          clientDataJSON: response.response.clientDataJSON,
          attestationObject: response.response.attestationObject,
        },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge,
      expectedOrigin: [...party.origins],
      expectedRPID: party.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    })
  ).pipe(
    Effect.map((result): Registered | null => {
      if (!result.verified) return null
      const { aaguid, credential, credentialBackedUp, credentialDeviceType } = result.registrationInfo
      if (Buffer.from(credential.id, "base64url").length > longestCredentialId) return null
      if (credential.id !== response.id || isFramed(response)) return null
      const transports = [...new Set(response.response.transports ?? [])]
      const platform = response.authenticatorAttachment === "platform" ||
        response.authenticatorAttachment !== "cross-platform" && transports.includes("internal")
      const backupEligible = credentialDeviceType === "multiDevice"
      return {
        kind: platform || backupEligible || isDiscoverable(response) ? "passkey" : "security_key",
        credentialId: credential.id,
        publicKey: new Uint8Array(credential.publicKey),
        signCount: credential.counter,
        aaguid,
        transports,
        platform,
        backupEligible,
        backupState: credentialBackedUp,
      }
    }),
    Effect.catch(() => Effect.succeed(null)),
  )

/** Whether a page of this origin may ask for the party's credentials, by the rule of browsers. */
export const mayAsk = ({ id }: RelyingParty, origin: string): boolean => {
  const page = URL.parse(origin)
  if (page === null || page.origin !== origin) return false
  const { hostname, protocol } = page
  return (protocol === "https:" || hostname === "localhost") && (hostname === id || hostname.endsWith(`.${id}`))
}

/** Options for `navigator.credentials.get()`, with a fresh challenge; `known` are the credentials that may answer. */
export const requestOptions = (
  { id }: Pick<RelyingParty, "id">,
  known: ReadonlyArray<{ readonly id: string; readonly transports: ReadonlyArray<string> }>,
  { timeout, userVerification }: { readonly timeout: number; readonly userVerification: UserVerification },
) =>
  Effect.promise(async () => {
    const { generateAuthenticationOptions } = await library()
    const { extensions: _, ...options } = await generateAuthenticationOptions({
      rpID: id,
      timeout,
      userVerification,
      allowCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    })
    return options
  })

/** The hash under which a challenge is stored until it is answered. */
export const challengeHash = (challenge: string): Uint8Array =>
  new Uint8Array(createHash("sha256").update(challenge).digest())

export interface Expected {
  readonly party: RelyingParty
  readonly challenge: Uint8Array
  readonly userVerification: UserVerification
  readonly credential: { readonly id: string; readonly publicKey: Uint8Array; readonly personId: PersonId }
}

export interface Asserted {
  readonly counter: number
  readonly userVerified: boolean
  readonly backupState: boolean
}

/**
 * What a credential signed for the challenge, or null where the response is not valid. The counter is left to the
 * caller, who knows the newest one.
 */
export const asserted = (
  { challenge, credential, party, userVerification }: Expected,
  response: AuthenticationResponse,
) =>
  Effect.tryPromise(async (): Promise<Asserted | null> => {
    const { authenticatorData, clientDataJSON, signature, userHandle } = response.response
    const owner = Buffer.from(userIdOf(credential.personId)).toString("base64url")
    if (response.id !== credential.id || userHandle != null && userHandle !== owner) return null
    const result = await (await library()).verifyAuthenticationResponse({
      response: {
        id: response.id,
        rawId: response.rawId,
        type: "public-key",
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: (answered) => timingSafeEqual(challengeHash(answered), challenge),
      expectedOrigin: [...party.origins],
      expectedRPID: party.id,
      requireUserVerification: userVerification === "required",
      credential: { id: credential.id, publicKey: new Uint8Array(credential.publicKey), counter: 0 },
    })
    if (!result.verified || isFramed(response)) return null
    const { credentialBackedUp, newCounter, userVerified } = result.authenticationInfo
    return { counter: newCounter, userVerified, backupState: credentialBackedUp }
  }).pipe(Effect.catch(() => Effect.succeed(null)))
