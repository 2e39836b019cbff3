/** X.509 for tests: an authority and its certificates, generated at run time so that no key is stored. */
import { Buffer } from "node:buffer"
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: ReadonlyArray<Uint8Array>) => der(0x30, ...parts)
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"))
const time = (text: string) => der(0x17, Buffer.from(text))
const yes = der(0x01, Buffer.from([255]))

const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"))
const nameOf = (commonName: string) => sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(commonName)))))

const pem = (bytes: Uint8Array) =>
  `-----BEGIN CERTIFICATE-----\n${
    Buffer.from(bytes).toString("base64").replace(/.{64}/g, "$&\n")
  }\n-----END CERTIFICATE-----\n`

const certificate = (
  subject: string,
  publicKey: KeyObject,
  issuer: { readonly name: string; readonly key: KeyObject },
  extension: Buffer,
  until = "491231235959Z",
) => {
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    nameOf(issuer.name),
    sequence(time("200101000000Z"), time(until)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(extension)),
  )
  const signature = der(0x03, Buffer.from([0]), sign("sha256", body, issuer.key))
  return pem(sequence(body, ecdsaWithSha256, signature))
}

/** An authority: its certificate, and `issue` for the certificate and key of a server with these DNS names. */
export const makeAuthority = (name: string) => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const issuer = { name, key: privateKey }
  const issueUntil = (until: string | undefined, names: ReadonlyArray<string>) => {
    const pair = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const alternatives = sequence(...names.map((dns) => der(0x82, Buffer.from(dns))))
    const extension = sequence(oid("551d11"), der(0x04, alternatives))
    return {
      cert: certificate(names[0]!, pair.publicKey, issuer, extension, until),
      key: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    }
  }
  const isAuthority = sequence(oid("551d13"), yes, der(0x04, sequence(yes)))
  return {
    certificate: certificate(name, publicKey, issuer, isAuthority),
    issue: (...names: ReadonlyArray<string>) => issueUntil(undefined, names),
    /** A certificate that expired in 2021. */
    issueExpired: (...names: ReadonlyArray<string>) => issueUntil("210101000000Z", names),
  }
}
