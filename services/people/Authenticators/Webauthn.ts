/**
 * Registration of passkeys and security keys (WebAuthn Level 3, 7.1). No attestation is asked for: which make it is does
 * not matter here, that its user was verified does, since it counts as two factors.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { RegistrationResponse } from "../../../schemas/identity/CredentialActions.ts"

/** Who asks: the portal that people see. */
export interface RelyingParty {
  /** A domain: the credential belongs to it and what lies under it. */
  readonly id: string
  /** Where the portal's pages are served. */
  readonly origins: ReadonlyArray<string>
}

/** Loaded by the first who registers: it is a fifth of what a start reads, and 20 MB that most processes never use. */
const library = () => import("@simplewebauthn/server")

const loopback = new Set(["127.0.0.1", "[::1]", "localhost"])

/** The portal at this address. A browser takes no address of a machine for a domain, but `localhost` for its own. */
export const relyingPartyAt = (portal: URL): RelyingParty => {
  if (!loopback.has(portal.hostname)) return { id: portal.hostname, origins: [portal.origin] }
  const local = new URL(portal.origin)
  local.hostname = "localhost"
  return { id: "localhost", origins: [local.origin, portal.origin] }
}

/** EdDSA, ES256, RS256. */
const algorithms = [-8, -7, -257]

export interface NewUser {
  readonly personId: string
  readonly name: string
  readonly displayName: string
}

/** Options for `navigator.credentials.create()`, with a fresh challenge; `known` are credentials not to be made again. */
export const creationOptions = (
  party: RelyingParty,
  user: NewUser,
  known: ReadonlyArray<{ readonly id: string; readonly transports: ReadonlyArray<string> }>,
) =>
  Effect.promise(async () =>
    (await library()).generateRegistrationOptions({
      rpName: "Bailiwick",
      rpID: party.id,
      // Authenticators keep it, so it says nothing about the person.
      userID: new Uint8Array(createHash("sha256").update(user.personId).digest()),
      userName: user.name,
      userDisplayName: user.displayName,
      timeout: 600_000,
      attestationType: "none",
      authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
      supportedAlgorithmIDs: algorithms,
      excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    })
  )

/** In bytes; a credential with a longer id is refused (WebAuthn Level 3, 7.1). */
const longestCredentialId = 1_023

export interface Registered {
  readonly kind: "passkey" | "security_key"
  readonly credentialId: string
  readonly publicKey: Uint8Array
  readonly signCount: number
  readonly aaguid: string
  readonly transports: ReadonlyArray<string>
  /** Part of the device that the browser runs on. */
  readonly platform: boolean
  readonly backupEligible: boolean
  readonly backupState: boolean
}

/** The portal's page stood in a frame of another origin's, which it never does by itself (7.1, `crossOrigin`). */
const isFramed = ({ response }: RegistrationResponse): boolean =>
  JSON.parse(Buffer.from(response.clientDataJSON, "base64url").toString("utf8")).crossOrigin === true

const isDiscoverable = ({ clientExtensionResults: results }: RegistrationResponse): boolean => {
  const properties = results?.["credProps"]
  return typeof properties === "object" && properties !== null && Reflect.get(properties, "rk") === true
}

/** What a browser made of the challenge, or null where it does not hold. */
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
