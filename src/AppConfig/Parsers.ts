/**
 * Parsers of the configuration's variables. A parser's failure completes a sentence that begins with the variable's
 * name.
 */
import { Duration, Option, Redacted, Result, Schema } from "effect"
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import { type ConfiguredIssuer, CookieAlgorithm } from "../../services/authentication/ConfiguredIssuer.ts"
import { ConfiguredConsoleIssuer, type ConsoleIssuer } from "../../services/console/ConfiguredConsoleIssuer.ts"
import { ConfiguredTokenIssuer, TokenAlgorithm } from "../../services/people/ConfiguredTokenIssuer.ts"
import { type BrandLogo, type BrandShades, shadesOf } from "../../services/platform/Brand.ts"
import { visible } from "../../services/platform/Visible.ts"
import { type MailSender, parseSender } from "../../services/platform/mail/MailSender.ts"
import { parseCidrs } from "../../services/platform/Outbound/AddressPolicy.ts"
import { ConfiguredTransmitter, effectsOf, type Transmitter } from "../../services/signals/ConfiguredTransmitter.ts"
import { type ConfiguredWitness, witnessKey } from "../../services/transparency/WitnessKey.ts"
import { maxAttempts } from "../../services/webhooks/RetrySchedule.ts"

/** A value, or the fault as the end of a sentence about the variable. */
export type Parsed<A> = Result.Result<A, string>

const fault = (what: string): Parsed<never> => Result.fail(what)

export const int = (min: number, max: number) => (text: string): Parsed<number> =>
  /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max
    ? Result.succeed(Number(text))
    : fault(`is not a whole number from ${min} to ${max}`)

export const share = (text: string): Parsed<number> =>
  /^(0|1|0?\.\d+|1\.0+)$/.test(text) ? Result.succeed(Number(text)) : fault("is not a number from 0 to 1")

export const boolean = (text: string): Parsed<boolean> =>
  text === "true" || text === "false" ? Result.succeed(text === "true") : fault("is neither true nor false")

/** A duration of at most `most` milliseconds. */
export const millisUpTo = (most: number, inWords: string) => (text: string): Parsed<number> =>
  Result.flatMap(millis(text), (read) => read > most ? fault(`is longer than ${inWords}`) : Result.succeed(read))

export const millis = (text: string): Parsed<number> => {
  const duration = /^\d+(\.\d+)? ?[a-z]+$/.test(text.trim())
    ? Duration.fromInput(text.trim() as Duration.Input)
    : Option.none<Duration.Duration>()
  if (Option.isNone(duration) || Duration.toMillis(duration.value) <= 0) return fault("is not a duration")
  return Duration.toDays(duration.value) > 3_650
    ? fault("is longer than ten years")
    : Result.succeed(Duration.toMillis(duration.value))
}

export const list = <A>(item: (text: string) => Parsed<A>) => (text: string): Parsed<ReadonlyArray<A>> => {
  const items: Array<A> = []
  for (const part of text.split(",").map((part) => part.trim()).filter((part) => part !== "")) {
    const parsed = item(part)
    if (Result.isFailure(parsed)) return fault(`has an item that ${parsed.failure}`)
    items.push(parsed.success)
  }
  return Result.succeed(items)
}

const isEncoded = (text: string) => {
  try {
    return decodeURIComponent(text) !== null
  } catch {
    return false
  }
}

export const url = (...schemes: ReadonlyArray<string>) => (text: string): Parsed<string> => {
  const parsed = URL.parse(text)
  if (parsed === null || !schemes.includes(parsed.protocol.slice(0, -1))) {
    return fault(`is not a URL of the scheme ${schemes.join(" or ")}`)
  }
  return isEncoded(parsed.username) && isEncoded(parsed.password)
    ? Result.succeed(text)
    : fault("has credentials that are not percent-encoded")
}

/** Scheme, host and port only: this program owns every path below it, and links are made from it. */
export const origin = (text: string): Parsed<string> =>
  Result.flatMap(url("http", "https")(text), () => {
    const { hash, pathname, search, username } = new URL(text)
    return pathname === "/" && search + hash + username === "" ? Result.succeed(text) : fault("is more than an origin")
  })

/** The origin of pages that may frame this program: https, or http on loopback; no wildcard. */
export const frameOrigin = (text: string): Parsed<string> =>
  Result.flatMap(origin(text), () => {
    const { hostname, origin, protocol } = new URL(text)
    if (!/^[a-z0-9.-]+$/.test(hostname)) return fault("is no plain host")
    const loopback = hostname === "localhost" || hostname === "127.0.0.1"
    return protocol === "https:" || loopback ? Result.succeed(origin) : fault("is neither https nor on loopback")
  })

/** `name=value` pairs, separated by commas, values percent-encoded (the OpenTelemetry specification's form). */
export const headers = (text: string): Parsed<Redacted.Redacted<Readonly<Record<string, string>>>> => {
  const pairs = text.split(",").map((pair) => /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e]*)\s*$/.exec(pair))
  if (pairs.some((pair) => pair === null || !isEncoded(pair[2]!))) return fault("has an item that is no name=value")
  return Result.succeed(Redacted.make(
    Object.fromEntries(pairs.map((pair) => [pair![1]!.toLowerCase(), decodeURIComponent(pair![2]!)])),
    { label: "headers" },
  ))
}

/** One URL or several, separated by commas. */
export const urls = (...schemes: ReadonlyArray<string>) => (text: string): Parsed<string> =>
  text.split(",").map((part) => url(...schemes)(part.trim())).find(Result.isFailure) ?? Result.succeed(text)

export const literal = <const A extends string>(...values: ReadonlyArray<A>) => (text: string): Parsed<A> => {
  const found = values.find((value) => value === text)
  return found === undefined ? fault(`is none of ${values.join(", ")}`) : Result.succeed(found)
}

export const delays = (text: string): Parsed<ReadonlyArray<number>> =>
  Result.flatMap(
    list(millis)(text),
    (all) =>
      all.length === maxAttempts ? Result.succeed(all) : fault(`has ${all.length} delays, not exactly ${maxAttempts}`),
  )

export const cidrs = (text: string): Parsed<ReadonlyArray<string>> => {
  const all = text.split(",").map((part) => part.trim()).filter((part) => part !== "")
  return Result.mapBoth(parseCidrs(all), {
    onSuccess: () => all,
    onFailure: () => "has an item that is no CIDR range",
  })
}

const issuerList = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(Schema.Struct({
  issuer: Schema.String,
  jwks_uri: Schema.String,
  algorithms: Schema.optionalKey(Schema.Array(CookieAlgorithm)),
}))))

const isWeb = (address: string) => /^https?:$/.test(URL.parse(address)?.protocol ?? "")

/** Accepts issuers whose keys can be fetched, each issuer once. */
const distinct = <A extends ConfiguredIssuer | ConfiguredTokenIssuer>(all: ReadonlyArray<A>) => {
  if (!all.every(({ jwks_uri }) => isWeb(jwks_uri))) {
    return fault("has a jwks_uri that is no URL of the scheme http or https")
  }
  return new Set(all.map(({ issuer }) => issuer)).size < all.length ? fault("has an issuer twice") : Result.succeed(all)
}

export const issuers = (text: string): Parsed<ReadonlyArray<ConfiguredIssuer>> =>
  issuerList(text).pipe(
    Result.mapError(() => "is not a JSON list of {issuer, jwks_uri, algorithms?}"),
    Result.flatMap(distinct),
  )

const tokenIssuerList = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(ConfiguredTokenIssuer)))

export const tokenIssuers = (text: string): Parsed<ReadonlyArray<ConfiguredTokenIssuer>> =>
  tokenIssuerList(text).pipe(
    Result.mapError(() => "is not a JSON list of {issuer, jwks_uri, algorithms?, acr_map?, max_aal?, max_lifetime?}"),
    Result.flatMap(distinct),
  )

const dynamicRegistration = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Struct({
  registration_endpoint: Schema.String.check(Schema.makeFilter(isWeb)),
  initial_access_token: Schema.optionalKey(Schema.String),
})))

/** `embedded` (null), or the registration endpoint of a provider (RFC 7591). */
export const identityProvider = (text: string) =>
  text === "embedded" ? Result.succeed(null) : Result.mapError(
    dynamicRegistration(text),
    () => "is neither embedded nor a JSON object {registration_endpoint, initial_access_token?}",
  )

/** `issuer client_id`: a service that authenticates with its own token. */
export const serviceClient = (text: string): Parsed<string> =>
  /^\S+ \S+$/.test(text) ? Result.succeed(text) : fault("is not an issuer and a client_id with a blank between them")

/** A file's text. */
export const file = (text: string): Parsed<string> => {
  try {
    return Result.succeed(readFileSync(text, "utf8"))
  } catch {
    return fault("names a file that cannot be read")
  }
}

const consoleIssuerList = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(ConfiguredConsoleIssuer)))

/** Over plain http the network can read codes and tokens: only an issuer on loopback may be reached so. */
const isSafeIssuer = (issuer: string) => {
  const url = URL.parse(issuer)
  return url?.protocol === "https:" ||
    url?.protocol === "http:" && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
}

const consoleIssuer = (configured: typeof ConfiguredConsoleIssuer.Type): Parsed<ConsoleIssuer> => {
  const { client_id, client_secret_file, issuer, name = null, resource = null, scope = "openid" } = configured
  if (!isSafeIssuer(issuer)) return fault("has an issuer that is no https URL")
  if (!scope.split(" ").includes("openid")) return fault("has a scope without openid")
  const secret = client_secret_file === undefined ? Result.succeed(null) : file(client_secret_file)
  return Result.mapBoth(secret, {
    onSuccess: (text) => ({
      issuer,
      name,
      clientId: client_id,
      clientSecret: text === null ? null : Redacted.make(text.trim(), { label: "client secret" }),
      scope,
      resource,
    }),
    onFailure: () => "has a client_secret_file that cannot be read",
  })
}

/** Each issuer once, with the secret that its file holds. */
export const consoleIssuers = (text: string): Parsed<ReadonlyArray<ConsoleIssuer>> =>
  consoleIssuerList(text).pipe(
    Result.mapError(() => "is not a JSON list of {issuer, client_id, client_secret_file?, name?, scope?, resource?}"),
    Result.flatMap((all) => Result.all(all.map(consoleIssuer))),
    Result.flatMap((all) =>
      new Set(all.map(({ issuer }) => issuer)).size < all.length ? fault("has an issuer twice") : Result.succeed(all)
    ),
  )

/** The path of a file that can be read. */
export const readable = (text: string): Parsed<string> => Result.map(file(text), () => text)

const isCertificate = (pem: string) => {
  try {
    return new X509Certificate(pem).subject !== null
  } catch {
    return false
  }
}

/** A file's PEM certificates. */
export const certificates = (text: string): Parsed<string> =>
  Result.flatMap(file(text), (pem) => {
    const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
    return found.some(isCertificate) ? Result.succeed(pem) : fault("names a file that holds no PEM certificate")
  })

export const sender = (text: string): Parsed<MailSender | null> => {
  const parsed = parseSender(text)
  return parsed === null ? fault("is neither an address nor a name with an address") : Result.succeed(parsed)
}

/** A name on one line, without invisible characters. */
export const brandName = (text: string): Parsed<string> => {
  const name = text.trim()
  return name.length > 0 && name.length <= 60 && visible(name) === name && !/\p{Cc}/u.test(name)
    ? Result.succeed(name)
    : fault("is not a name of 1 to 60 visible characters")
}

/** `#rrggbb`, and the shades of it that can be read. */
export const brandColor = (text: string): Parsed<BrandShades | null> =>
  /^#[0-9a-f]{6}$/i.test(text) ? Result.succeed(shadesOf(text.toLowerCase())) : fault("is not a colour as #rrggbb")

const maxLogo = 262_144

const logoType = (bytes: Uint8Array): BrandLogo["type"] | null => {
  if (Buffer.from(bytes.subarray(0, 8)).equals(Buffer.from("89504e470d0a1a0a", "hex"))) return "image/png"
  const text = new TextDecoder().decode(bytes).trimStart()
  const isSvg = text.startsWith("<svg") ||
    ((text.startsWith("<?xml") || text.startsWith("<!--")) && text.includes("<svg"))
  return isSvg ? "image/svg+xml" : null
}

/** A file with an SVG or a PNG, read once at the start. */
export const brandLogo = (text: string): Parsed<BrandLogo | null> =>
  Result.flatMap(
    Result.try({ try: () => readFileSync(text), catch: () => "names a file that cannot be read" }),
    (bytes) => {
      const type = logoType(bytes)
      if (type === null) return fault("names a file that is neither an SVG nor a PNG")
      return bytes.length > maxLogo ? fault("names a file of more than 256 KiB") : Result.succeed({ type, bytes })
    },
  )

export const host = (text: string): Parsed<string> =>
  /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text) ? Result.succeed(text.toLowerCase()) : fault("is not a host name")

/** An address to listen on: a name, an IPv4 or an IPv6 address. */
export const listening = (text: string): Parsed<string> =>
  isIP(text) !== 0 || /^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/i.test(text)
    ? Result.succeed(text)
    : fault("is neither a host name nor an address")

export const any = (text: string): Parsed<string> => Result.succeed(text)
export const optional = <A>(parse: (text: string) => Parsed<A>) => (text: string): Parsed<A | null> => parse(text)

/** `key url`: a witness of the transparency log, with its key as it publishes it. */
const witness = (text: string): Parsed<ConfiguredWitness> => {
  const [key, url, ...more] = text.split(/ +/)
  const read = witnessKey(key!)
  if (read === null || url === undefined || more.length > 0) {
    return fault("is not a key of a witness (name+id+base64) and a URL with a blank between them")
  }
  return isWeb(url) ? Result.succeed({ key: read, url }) : fault("has a URL that is not of the scheme http or https")
}

/** A checkpoint has at most 100 lines, in the kit and by C2SP signed-note. */
const mostWitnesses = 32

export const witnesses = (text: string): Parsed<ReadonlyArray<ConfiguredWitness>> =>
  Result.flatMap(list(witness)(text), (all) => {
    if (all.length > mostWitnesses) return fault(`has more than ${mostWitnesses} witnesses`)
    return new Set(all.map(({ key }) => key.name)).size < all.length
      ? fault("has a witness twice")
      : Result.succeed(all)
  })

const transmitterList = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(ConfiguredTransmitter)))

const secret = (text: string | undefined, label: string) => text === undefined ? null : Redacted.make(text, { label })

const transmitter = (configured: typeof ConfiguredTransmitter.Type): Parsed<Transmitter> => {
  const { algorithms, audience, emails = false, events, issuer, jwks_uri, poll, push_token, subject_issuers } =
    configured
  const addresses = [jwks_uri ?? issuer, ...(poll === undefined ? [] : [poll.endpoint])]
  if (!addresses.every(isSafeIssuer)) {
    return fault("has a jwks_uri, an endpoint, or an issuer without a jwks_uri that is no https URL")
  }
  if (push_token === undefined && poll === undefined) return fault("has a transmitter without push_token and poll")
  const effects = effectsOf(events)
  if (effects === null) return fault("has an event that is not known, or that cannot do what is asked of it")
  return Result.succeed({
    issuer,
    audience,
    jwksUri: jwks_uri ?? null,
    algorithms: algorithms ?? TokenAlgorithm.literals,
    pushToken: secret(push_token, "push token"),
    poll: poll === undefined ? null : { endpoint: poll.endpoint, token: secret(poll.token, "poll token")! },
    subjectIssuers: subject_issuers ?? [issuer],
    emails,
    effects,
  })
}

/** Each issuer and each push token once: the token of a push tells its transmitter. */
const distinctTransmitters = (all: ReadonlyArray<Transmitter>): Parsed<ReadonlyArray<Transmitter>> => {
  const tokens = all.flatMap(({ pushToken }) => pushToken === null ? [] : [Redacted.value(pushToken)])
  if (new Set(all.map(({ issuer }) => issuer)).size < all.length) return fault("has an issuer twice")
  return new Set(tokens).size < tokens.length ? fault("has a push_token twice") : Result.succeed(all)
}

/** Identity providers whose security events this installation takes; all their faults at once. */
export const transmitters = (text: string): Parsed<ReadonlyArray<Transmitter>> =>
  transmitterList(text).pipe(
    Result.mapError(() =>
      "is not a JSON list of {issuer, audience, jwks_uri?, algorithms?, push_token?, poll?, subject_issuers?, " +
      "emails?, events?}, with tokens of 32 characters or more"
    ),
    Result.flatMap((all) => {
      const read = all.map(transmitter)
      const faults = new Set(read.flatMap((one) => Result.isFailure(one) ? [one.failure] : []))
      return faults.size > 0 ? fault([...faults].join("; ")) : Result.all(read)
    }),
    Result.flatMap(distinctTransmitters),
  )
