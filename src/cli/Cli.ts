/** The commands (docs/commands.md), each in a file of its own. */
import { Command } from "effect/cli"
import { apiKeys } from "./account/ApiKeysCommand.ts"
import { deliveries } from "./account/DeliveriesCommand.ts"
import { listen } from "./account/ListenCommand.ts"
import { reviews } from "./account/ReviewsCommand.ts"
import { transfers } from "./account/TransfersCommand.ts"
import { webhooks } from "./account/WebhooksCommand.ts"
import { audit } from "./AuditCommand.ts"
import { backup } from "./Backup.ts"
import { deadLetters } from "./DeadLetterCommand.ts"
import { directory } from "./DirectoryApply.ts"
import { doctor } from "./Doctor.ts"
import { keys } from "./KeyCommand.ts"
import { installation } from "./InstallationCommand.ts"
import { log } from "./LogCommand.ts"
import { migrateCommand } from "./Migrate.ts"
import { nats } from "./Nats.ts"
import { publish } from "./Publish.ts"
import { reset } from "./Reset.ts"
import { restore } from "./Restore.ts"
import { rollout } from "./Rollout.ts"
import { session } from "./Session.ts"
import { start } from "./StartCommand.ts"
import { tail } from "./Tail.ts"
import { token } from "./Token.ts"
import { upgrade } from "./Upgrade.ts"
import { bus } from "./operations/BusCommand.ts"
import { consumers } from "./operations/ConsumersCommand.ts"
import { jobs } from "./operations/JobsCommand.ts"
import { mails } from "./operations/MailsCommand.ts"
import { queues } from "./operations/QueuesCommand.ts"
import { rejects } from "./operations/RejectsCommand.ts"
import { isBundle } from "../../services/platform/CommandSpelling.ts"

export const cli = Command.make(isBundle ? "bailiwick" : "cli").pipe(
  Command.withDescription(
    "Looks after a Bailiwick instance: the one that runs with BAILIWICK_HOME, or the one that DATABASE_URL and NATS_URL name.",
  ),
  Command.withSubcommands([
    start,
    migrateCommand,
    upgrade,
    directory,
    session,
    token,
    publish,
    tail,
    deadLetters,
    nats,
    rollout,
    backup,
    restore,
    reset,
    installation,
    keys,
    audit,
    log,
    doctor,
    queues,
    bus,
    consumers,
    jobs,
    mails,
    rejects,
    webhooks,
    deliveries,
    apiKeys,
    transfers,
    reviews,
    listen,
  ]),
)
