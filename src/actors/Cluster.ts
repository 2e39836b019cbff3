/**
 * Places the actors. A single process keeps them in memory, without sockets or storage. With CLUSTER=on they are
 * sharded over all processes with the role `actors` on the same database; commands travel over sockets, and PostgreSQL
 * records the members and the owner of each shard (advisory locks of a session).
 *
 * Commands are volatile, and each is offered to an actor once: where a runner is gone, or no longer owns the shard, the
 * sender learns so at once and calls the service itself (Mailbox). So no command waits for a shard to move. Two
 * simultaneous owners, which no cluster can exclude, are serialised by the rows' versions, as any two processes are.
 *
 * The sockets have no authentication: only processes of this installation may be able to reach CLUSTER_PORT.
 */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { PgClient } from "@effect/sql-pg"
import { Cause, Effect, Layer, Option, Redacted, Semaphore } from "effect"
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
import { grace, watched } from "../../services/platform/database/Database/StalledConnections.ts"

export const singleProcess = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provideMerge(MessageStorage.layerMemory),
  Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer({ shardsPerGroup: 32 })),
)

export interface ClusterOptions {
  /**
   * For the program's own role. The pool is separate and never multiplexed, since the shards' locks belong to its
   * session.
   */
  readonly url: Redacted.Redacted
  /** The address for other processes; null: this process has no actors and only sends. */
  readonly address: { readonly host: string; readonly port: number } | null
}

/** Enough for a dozen processes, and few enough that an ending process releases them all within a second. */
export const shards = 48

/** A killed or frozen process is detected after at most 4.5 s; half a second later other processes own its shards. */
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
      // The cluster's columns are timestamps without a zone.
      startupParameters: { statement_timeout: "5s", lock_timeout: "2s", timezone: "UTC" },
    })),
  )

/**
 * Reports a missing runner as a full mailbox: Sharding would retry it until the sender's timeout, but passes a full
 * mailbox on at once.
 */
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

/** Closes the connection that is being handled. */
const closed = Effect.flatMap(
  Effect.serviceOption(NodeSocket.NetSocket),
  (socket) => Effect.sync(() => void (Option.isSome(socket) && socket.value.destroy())),
)

/** Far more than an installation has processes; without a bound, connections to this port could take all descriptors. */
const maxPeers = 256

/**
 * The server for other processes; a connection beyond `maxPeers` is closed at once. When a peer is killed its socket ends with a reset, which @effect/platform-node 4.1.0
 * logs as an error; here it is logged at debug level, since the runners' health check reports dead peers.
 */
const socketServer = Layer.effect(
  SocketServer.SocketServer,
  Effect.map(SocketServer.SocketServer, (server) => {
    const room = Semaphore.makeUnsafe(maxPeers)
    return SocketServer.SocketServer.of({
      ...server,
      run: (handler) =>
        server.run((socket) =>
          Effect.catchCause(
            Effect.flatMap(
              room.withPermitsIfAvailable(1)(handler(socket)),
              Option.match({ onNone: () => closed, onSome: () => Effect.void }),
            ),
            (cause) =>
              cause.reasons.length > 0 && cause.reasons.every(isSocketError)
                ? Effect.logDebug("the socket of another process ended", cause)
                : Effect.failCause(cause),
          )
        ),
    })
  }),
).pipe(Layer.provide(NodeClusterSocket.layerSocketServer))

/** Actors sharded over all processes on this database. */
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
