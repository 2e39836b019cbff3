/** Time-based one-time passwords (RFC 6238): SHA-1, six digits, 30 s, which every authenticator app supports. */
import { Redacted } from "effect"
import { Secret, TOTP } from "otpauth"

const period = 30

const totpOf = (secret: Redacted.Redacted, label = "") =>
  new TOTP({
    issuer: "Bailiwick",
    label,
    algorithm: "SHA1",
    digits: 6,
    period,
    secret: Secret.fromBase32(Redacted.value(secret)),
  })

/** 160 random bits in base32 (the length that RFC 4226, 4, recommends). */
export const newSecret = (): Redacted.Redacted => Redacted.make(new Secret({ size: 20 }).base32, { label: "totp" })

/** The URI that an app reads from a QR code. */
export const uriOf = (secret: Redacted.Redacted, label: string): string => totpOf(secret, label).toString()

/** The time step whose code this is: the present step, the one before or the one after (RFC 6238, 5.2); else null. */
export const stepOf = (secret: Redacted.Redacted, code: string, millis: number): number | null => {
  const delta = totpOf(secret).validate({ token: code, timestamp: millis, window: 1 })
  return delta === null ? null : Math.floor(millis / 1_000 / period) + delta
}
