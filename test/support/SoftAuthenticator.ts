/**
 * A passkey in software (WebAuthn Level 3, 6.5): an ES256 key that answers `navigator.credentials.create()` and `get()`
 * as a browser and its authenticator would, without attestation.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

/** The part of CBOR (RFC 8949) that an attestation needs. */
type Cbor = number | string | Uint8Array | ReadonlyMap<number | string, Cbor>

const head = (major: number, n: number): Buffer =>
  n < 24
    ? Buffer.from([major << 5 | n])
    : n < 256
    ? Buffer.from([major << 5 | 24, n])
    : Buffer.from([major << 5 | 25, n >> 8, n & 255])

const cbor = (value: Cbor): Buffer => {
  if (typeof value === "number") return value >= 0 ? head(0, value) : head(1, -1 - value)
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, item]) => [cbor(key), cbor(item)])])
}

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest()

export interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export const newKey = (): KeyPair => generateKeyPairSync("ec", { namedCurve: "P-256" })

export interface Creation {
  /** The key that later answers `get`; a new one by default. */
  readonly key?: KeyPair
  readonly challenge: string
  readonly origin: string
  readonly rpId: string
  /** Whether the user was verified, not only present; true by default. */
  readonly verified?: boolean
  readonly attachment?: "platform" | "cross-platform"
  /** Whether its maker copies the passkey to other devices. */
  readonly synced?: boolean
  /** How often it has signed; 0 by default. */
  readonly counter?: number
  /** The id of an earlier credential, to answer with it again. */
  readonly credentialId?: Buffer
  /** The credential id in the answer, where it is not the real one. */
  readonly calledId?: string
  /** Whether the page is in a frame of another origin. */
  readonly framed?: boolean
}

/** What `PublicKeyCredential.toJSON()` gives after `create()`. */
export const create = (how: Creation) => {
  const { publicKey } = how.key ?? newKey()
  const { x, y } = publicKey.export({ format: "jwk" })
  const credentialId = how.credentialId ?? randomBytes(32)
  const coordinate = (text: string | undefined) => Buffer.from(text ?? "", "base64url")
  const key = cbor(new Map<number, Cbor>([[1, 2], [3, -7], [-1, 1], [-2, coordinate(x)], [-3, coordinate(y)]]))
  // User present, user verified, backup eligible and backed up, attested credential data (6.1).
  const flags = 0x41 | (how.verified === false ? 0 : 0x04) | (how.synced === true ? 0x18 : 0)
  const counter = Buffer.alloc(4)
  counter.writeUInt32BE(how.counter ?? 0)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(credentialId.length)
  const authData = Buffer.concat([
    sha256(how.rpId),
    Buffer.from([flags]),
    counter,
    Buffer.alloc(16),
    length,
    credentialId,
    key,
  ])
  const attestation = cbor(new Map<string, Cbor>([["fmt", "none"], ["attStmt", new Map()], ["authData", authData]]))
  const client = JSON.stringify({
    type: "webauthn.create",
    challenge: how.challenge,
    origin: how.origin,
    crossOrigin: how.framed === true,
  })
  const attachment = how.attachment ?? "platform"
  const id = how.calledId ?? credentialId.toString("base64url")
  return {
    id,
    rawId: id,
    type: "public-key",
    response: {
      clientDataJSON: Buffer.from(client).toString("base64url"),
      attestationObject: attestation.toString("base64url"),
      transports: attachment === "platform" ? ["internal", "hybrid"] : ["usb"],
      publicKeyAlgorithm: -7,
    },
    authenticatorAttachment: attachment,
    clientExtensionResults: { credProps: { rk: attachment === "platform" } },
  }
}

export interface Assertion {
  readonly key: KeyPair
  /** As the registration's answer named it. */
  readonly id: string
  readonly challenge: string
  readonly origin: string
  readonly rpId: string
  readonly counter: number
  readonly verified?: boolean
  readonly userHandle?: string
  readonly framed?: boolean
}

/** What `PublicKeyCredential.toJSON()` gives after `get()`. */
export const get = (how: Assertion) => {
  const counter = Buffer.alloc(4)
  counter.writeUInt32BE(how.counter)
  // User present, and verified.
  const flags = 0x01 | (how.verified === false ? 0 : 0x04)
  const authData = Buffer.concat([sha256(how.rpId), Buffer.from([flags]), counter])
  const client = JSON.stringify({
    type: "webauthn.get",
    challenge: how.challenge,
    origin: how.origin,
    crossOrigin: how.framed === true,
  })
  return {
    id: how.id,
    rawId: how.id,
    type: "public-key",
    response: {
      clientDataJSON: Buffer.from(client).toString("base64url"),
      authenticatorData: authData.toString("base64url"),
      signature: sign("sha256", Buffer.concat([authData, sha256(client)]), how.key.privateKey).toString("base64url"),
      ...(how.userHandle === undefined ? {} : { userHandle: how.userHandle }),
    },
    authenticatorAttachment: "platform",
    clientExtensionResults: {},
  }
}
