/**
 * The commands (docs/commands.md), each in a file of its own. Only the one that was typed is loaded: all of them together
 * took 0.4 s of a core more, half of a command's start.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { isBundle } from "../../services/platform/CommandSpelling.ts"

/** By what is typed, in the order of the help. */
const commands = {
  start: async () => (await import("./StartCommand.ts")).start,
  migrate: async () => (await import("./Migrate.ts")).migrateCommand,
  upgrade: async () => (await import("./Upgrade.ts")).upgrade,
  directory: async () => (await import("./DirectoryApply.ts")).directory,
  session: async () => (await import("./Session.ts")).session,
  token: async () => (await import("./Token.ts")).token,
  publish: async () => (await import("./Publish.ts")).publish,
  tail: async () => (await import("./Tail.ts")).tail,
  "dead-letters": async () => (await import("./DeadLetterCommand.ts")).deadLetters,
  nats: async () => (await import("./Nats.ts")).nats,
  rollout: async () => (await import("./Rollout.ts")).rollout,
  backup: async () => (await import("./Backup.ts")).backup,
  restore: async () => (await import("./Restore.ts")).restore,
  reset: async () => (await import("./Reset.ts")).reset,
  installation: async () => (await import("./InstallationCommand.ts")).installation,
  keys: async () => (await import("./KeyCommand.ts")).keys,
  audit: async () => (await import("./AuditCommand.ts")).audit,
  log: async () => (await import("./LogCommand.ts")).log,
  doctor: async () => (await import("./Doctor.ts")).doctor,
  signals: async () => (await import("./SignalsCommand.ts")).signals,
  queues: async () => (await import("./operations/QueuesCommand.ts")).queues,
  bus: async () => (await import("./operations/BusCommand.ts")).bus,
  consumers: async () => (await import("./operations/ConsumersCommand.ts")).consumers,
  jobs: async () => (await import("./operations/JobsCommand.ts")).jobs,
  mails: async () => (await import("./operations/MailsCommand.ts")).mails,
  rejects: async () => (await import("./operations/RejectsCommand.ts")).rejects,
  webhooks: async () => (await import("./account/WebhooksCommand.ts")).webhooks,
  deliveries: async () => (await import("./account/DeliveriesCommand.ts")).deliveries,
  "api-keys": async () => (await import("./account/ApiKeysCommand.ts")).apiKeys,
  transfers: async () => (await import("./account/TransfersCommand.ts")).transfers,
  reviews: async () => (await import("./account/ReviewsCommand.ts")).reviews,
  campaigns: async () => (await import("./account/CampaignsCommand.ts")).campaigns,
  evidence: async () => (await import("./account/EvidenceCommand.ts")).evidence,
  listen: async () => (await import("./account/ListenCommand.ts")).listen,
}

const isCommand = (word: string): word is keyof typeof commands => Object.hasOwn(commands, word)

/** The command line with the command that its first word names; with all of them for help, completions and other words. */
export const cliFor = (words: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const [word = ""] = words.some((one) => one.startsWith("--completions")) ? [] : words
    return Command.make(isBundle ? "bailiwick" : "cli").pipe(
      Command.withDescription(
        "Looks after a Bailiwick instance: the one that runs with BAILIWICK_HOME, or the one that DATABASE_URL and NATS_URL name.",
      ),
      Command.withSubcommands(
        isCommand(word) ? [await commands[word]()] : await Promise.all(Object.values(commands).map((load) => load())),
      ),
    )
  })
