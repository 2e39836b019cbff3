/**
 * The advisory locks of the program, each by its name. All but `indexes` are held to the end of the transaction that
 * takes them. Their place among the other locks is in docs/lock-order.md, and two locks that triggers take are in the migrations that made
 * those.
 *
 * The expressions never change: an older program beside this one takes the same locks by them.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

const keys = {
  /** Credentials are compared with the owners of their domains. */
  smtpOwnership: (sql: PgClient.PgClient) => sql`${0x62_61_69_01}`,
  /** Directory lines of kinds with a history are applied one batch at a time. */
  directoryHistory: (sql: PgClient.PgClient) => sql`${0x62_61_69_02}`,
  /** Changes of which signing keys exist, and of their states. */
  signingKeys: (sql: PgClient.PgClient) => sql`${0x62_61_69_16}`,
  counts: (sql: PgClient.PgClient) => sql`hashtext('bailiwick counts')`,
  partitions: (sql: PgClient.PgClient) => sql`hashtext('bailiwick partitions')`,
  vault: (sql: PgClient.PgClient) => sql`hashtext('bailiwick vault')`,
  grants: (sql: PgClient.PgClient) => sql`hashtext('bailiwick grants')`,
  clusterTables: (sql: PgClient.PgClient) => sql`hashtext('bailiwick cluster')`,
  /** The transparency log's entries are numbered by one process at a time. */
  transparencyLog: (sql: PgClient.PgClient) => sql`hashtext('bailiwick transparency log')`,
  /** One index is made at a time, outside of transactions. */
  indexes: (sql: PgClient.PgClient) => sql`hashtext('bailiwick indexes')`,
}

export type AdvisoryLock = keyof typeof keys

/** Waits for the lock, for as long as `lock_timeout` allows; fails with LockTimeoutError after that. */
export const lock = (sql: PgClient.PgClient, name: AdvisoryLock) =>
  Effect.asVoid(sql`select pg_advisory_xact_lock(${keys[name](sql)})`)

/** Orders commands on one project. */
export const lockProject = (sql: PgClient.PgClient, projectId: string) =>
  Effect.asVoid(sql`select pg_advisory_xact_lock(hashtextextended(${`project ${projectId}`}, 0))`)

/** Takes the lock where it is free; gives whether this transaction has it now. */
export const tryLock = (sql: PgClient.PgClient, name: AdvisoryLock) =>
  Effect.map(
    sql<{ own: boolean }>`select pg_try_advisory_xact_lock(${keys[name](sql)}) as own`,
    ([row]) => row!.own,
  )

/**
 * Takes the lock until the connection ends, where it is free; for a client of one connection. It never waits: a
 * transaction that waits is one that CREATE INDEX CONCURRENTLY waits for.
 */
export const tryOnConnection = (sql: PgClient.PgClient, name: AdvisoryLock) =>
  Effect.map(
    sql<{ own: boolean }>`select pg_try_advisory_lock(${keys[name](sql)}) as own`,
    ([row]) => row!.own,
  )
