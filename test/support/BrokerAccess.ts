/** How a test connects to a broker: the credential of its URL or of a file's text, and the authority of its certificate. */
import { credsAuthenticator, type NodeConnectionOptions } from "@nats-io/transport-node"
import { Redacted } from "effect"

export interface BrokerAccess {
  /** One or several, separated by commas. */
  readonly url: Redacted.Redacted
  /** The text of a credentials file, where the URL has no credential. */
  readonly creds?: string
  /** The certificate of the authority, in PEM, of a broker with TLS. */
  readonly ca?: string
}

export type BrokerPlace = Redacted.Redacted | BrokerAccess

export const urlOf = (place: BrokerPlace): Redacted.Redacted => Redacted.isRedacted(place) ? place : place.url

export const optionsOf = (place: BrokerPlace): NodeConnectionOptions => {
  const { ca, creds, url }: BrokerAccess = Redacted.isRedacted(place) ? { url: place } : place
  const urls = Redacted.value(url).split(",").map((text) => new URL(text))
  const { password, username } = urls[0]!
  return {
    servers: urls.map(({ host }) => host),
    ...(creds !== undefined
      ? { authenticator: credsAuthenticator(new TextEncoder().encode(creds)) }
      : password === ""
      ? { token: username }
      : { user: username, pass: password }),
    ...(ca === undefined ? {} : { tls: { ca } }),
  }
}
