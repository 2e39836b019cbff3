/**
 * The decentralized credentials of NATS: an operator signs the JWT of an account, the account signs those of its users, and
 * a user's JWT and seed stand in one credentials file. Made at run time, so that no key is stored.
 */
import { nkeys } from "@nats-io/transport-node"
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"

type KeyPair = ReturnType<typeof nkeys.createUser>

const encoded = (text: string | Uint8Array) => Buffer.from(text).toString("base64url")

const signed = (issuer: KeyPair, subject: KeyPair, name: string, nats: object) => {
  const claims = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
    nats: { version: 2, ...nats },
  }
  const header = { typ: "JWT", alg: "ed25519-nkey" }
  const text = `${encoded(JSON.stringify(header))}.${encoded(JSON.stringify(claims))}`
  return `${text}.${encoded(issuer.sign(new TextEncoder().encode(text)))}`
}

const unlimited = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
  mem_storage: -1,
  disk_storage: -1,
  streams: -1,
  consumer: -1,
}

const decorated = (title: string, secret: string) => `-----BEGIN ${title}-----\n${secret}\n------END ${title}------\n\n`

export interface NatsOperator {
  /** The lines of a server's configuration. */
  readonly configuration: ReadonlyArray<string>
  /** The text of a credentials file of another user of the account with streams. */
  readonly credentials: () => string
}

/** An operator with one account for streams, and the servers' own. */
export const makeOperator = (): NatsOperator => {
  const operator = nkeys.createOperator()
  const account = nkeys.createAccount()
  const system = nkeys.createAccount()
  const accountJwt = (of: KeyPair, name: string, limits: object) =>
    `${of.getPublicKey()}: ${signed(operator, of, name, { type: "account", limits })}`
  return {
    configuration: [
      `operator: ${signed(operator, operator, "bailiwick", { type: "operator" })}`,
      `system_account: ${system.getPublicKey()}`,
      `resolver: MEMORY`,
      `resolver_preload: {`,
      `  ${accountJwt(account, "mail", unlimited)}`,
      `  ${accountJwt(system, "system", { ...unlimited, mem_storage: 0, disk_storage: 0, streams: 0, consumer: 0 })}`,
      `}`,
    ],
    credentials: () => {
      const user = nkeys.createUser()
      const limits = { pub: {}, sub: {}, subs: -1, data: -1, payload: -1 }
      const jwt = signed(account, user, "bailiwick", { type: "user", ...limits })
      return decorated("NATS USER JWT", jwt) + decorated("USER NKEY SEED", new TextDecoder().decode(user.getSeed()))
    },
  }
}
