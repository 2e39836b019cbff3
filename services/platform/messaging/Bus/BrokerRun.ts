/**
 * Names a server of the broker from one start to an end at which it may have lost messages. A server's own id is another
 * one after every start. The embedded server has a name of this form, which it keeps over an orderly stop, after which
 * all that it took is on disk; the names that operators give to servers outlast a crash, and say nothing.
 */
import { randomUUID } from "node:crypto"

const prefix = "bailiwick-run-"

export const newBrokerRun = (): string => `${prefix}${randomUUID()}`

export const isBrokerRun = (name: string): boolean =>
  name.startsWith(prefix) && /^[0-9a-f-]{36}$/.test(name.slice(prefix.length))
