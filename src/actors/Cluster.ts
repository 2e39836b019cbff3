/**
 * Where actors live. Alone, a process keeps them in its memory: no sockets, no storage. With CLUSTER=on they are sharded
 * over every process on the same database that has the role `actors`; commands travel over sockets, and PostgreSQL holds
 * who is there and who has which shard (advisory locks of a session).
 *
 * Commands are volatile, and an actor is offered each once: where a runner is gone, or no longer has the shard, the
 * sender hears so at once and calls the service itself (Mailbox). So nothing waits for a shard to move, and two owners at
 * a time, which no cluster can exclude, meet at the rows' versions as any two processes do.
 *
 * The sockets know no credentials: whoever reaches CLUSTER_PORT is a process of this installation.
 */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import { PgClient } from "@effect/sql-pg"
import { Cause, Effect, Layer, Option, Redacted } from "effect"
import {
  ClusterError,
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerServer,
  RunnerStorage,
  Sharding,
  ShardingConfig,
  Snowflake,
  SqlRunnerStorage,
} from "effect/cluster"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { Socket, SocketServer } from "effect/socket"
import { grace, watched } from "../../services/platform/database/Database/Watched.ts"

export const singleProcess = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provideMerge(MessageStorage.layerMemory),
  Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer({ shardsPerGroup: 32 })),
)

export interface ClusterOptions {
  /** The program's own role: a pool of its own, never multiplexed, since the shards' locks belong to its session. */
  readonly url: Redacted.Redacted
  /** Under which the other processes reach this one; null: it has no actors of its own and only sends. */
  readonly address: { readonly host: string; readonly port: number } | null
}

/** Enough for a dozen processes, and few enough that a process which ends has given them up within a second. */
export const shards = 48

/** A killed or frozen process is missed after 4.5 s at most, and in another half its shards are elsewhere. */
const timing = {
  shardLockExpiration: "4500 millis",
  shardLockRefreshInterval: "1500 millis",
  refreshAssignmentsInterval: "500 millis",
  runnerHealthCheckInterval: "2 seconds",
} as const

const storage = ({ url }: ClusterOptions) =>
  SqlRunnerStorage.layerStorage({}).pipe(
    Layer.provide(PgClient.layer({
      url,
      applicationName: "bailiwick cluster",
      connectTimeout: "5 seconds",
      stream: watched(Redacted.value(url), 5 + grace),
      maxConnections: 3,
      // The cluster's times have no zone.
      startupParameters: { statement_timeout: "5s", lock_timeout: "2s", timezone: "UTC" },
    })),
  )

/** Sharding would try a runner that is gone again until the sender's patience ends; a full mailbox it passes on. */
const offeredOnce = Effect.map(Runners.makeRpc, (runners) =>
  Runners.Runners.of({
    ...runners,
    send: (options) =>
      Effect.catchTags(runners.send(options), {
        RunnerUnavailable: () => new ClusterError.MailboxFull({ address: options.message.envelope.address }),
        EntityNotAssignedToRunner: ({ address }) => new ClusterError.MailboxFull({ address }),
      }),
  }))

const isSocketError = (reason: Cause.Reason<unknown>): boolean =>
  Cause.isFailReason(reason)
    ? Socket.isSocketError(reason.error)
    : Cause.isDieReason(reason) && Socket.isSocketError(reason.defect)

/**
 * The server that peers connect to. The socket of a killed peer ends with a reset, which @effect/platform-node 4.1.0 logs
 * as an error; who is gone is the runners' health to say.
 */
const socketServer = Layer.effect(
  SocketServer.SocketServer,
  Effect.map(SocketServer.SocketServer, (server) =>
    SocketServer.SocketServer.of({
      ...server,
      run: (handler) =>
        server.run((socket) =>
          Effect.catchCause(
            handler(socket),
            (cause) =>
              cause.reasons.length > 0 && cause.reasons.every(isSocketError)
                ? Effect.logDebug("the socket of another process ended", cause)
                : Effect.failCause(cause),
          )
        ),
    })),
).pipe(Layer.provide(NodeClusterSocket.layerSocketServer))

/** Over every process on this database. */
export const manyProcesses = (options: ClusterOptions) => {
  const { address } = options
  const sharding = address === null
    ? Sharding.layer.pipe(Layer.provide(RunnerHealth.layerNoop))
    : RunnerServer.layer.pipe(
      Layer.provide(RpcServer.layerProtocolSocketServer),
      Layer.provide(socketServer),
      Layer.provideMerge(Sharding.layer),
      Layer.provide(RunnerHealth.layerPing),
    )
  return sharding.pipe(
    Layer.provide(Layer.effect(Runners.Runners, offeredOnce).pipe(Layer.provide(Snowflake.layerGenerator))),
    Layer.provide(NodeClusterSocket.layerClientProtocol),
    Layer.provide([storage(options), MessageStorage.layerNoop, RpcSerialization.layerSchemaBinary({})]),
    Layer.provide(ShardingConfig.layer({
      ...timing,
      shardsPerGroup: shards,
      runnerAddress: Option.map(Option.fromNullOr(address), ({ host, port }) => RunnerAddress.make(host, port)),
    })),
  )
}
