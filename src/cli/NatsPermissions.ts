/**
 * The broker's users as a block of nats-server's configuration: one for each kind of publisher, who may publish what it
 * is asked about and nothing else (the feed decides who may what), and one for each stream that
 * somebody may follow. Whoever follows reads through one durable consumer that the operator makes: who may make consumers
 * could have a stream delivered to any subject.
 *
 * Answers go to an inbox of the user's own. `_INBOX.>`, which clients take by themselves, would let each of them read
 * what is handed out to the others.
 */
import { directorySubjects, identityDirectorySubjects } from "../../schemas/bus/Directory.ts"
import { type StreamName, Streams } from "../../schemas/bus/Streams.ts"

interface Publisher {
  readonly user: string
  readonly subject: string
  readonly says: string
}

const publishers: ReadonlyArray<Publisher> = [
  { user: "mail_events", subject: Streams.EVENTS.subjects[0], says: "what happened to mail" },
  { user: "notifications", subject: Streams.EVENTS.subjects[1], says: "notices to accounts" },
  {
    user: "mail_directory",
    subject: directorySubjects,
    says: "accounts, workspaces, domains; whoever has it owns the mail side",
  },
  {
    user: "identity_directory",
    subject: identityDirectorySubjects,
    says: "people, institutions, projects; with IDENTITY_DIRECTORY=follow it decides who may what",
  },
]

interface Subscriber {
  readonly user: string
  readonly stream: StreamName
  readonly sees: string
}

const subscribers: ReadonlyArray<Subscriber> = [
  { user: "attempts", stream: "RESULTS", sees: "each attempt at a webhook" },
  { user: "dead_letters", stream: "DEAD_LETTERS", sees: "deliveries that were given up" },
  { user: "transfers", stream: "TRANSFERS", sees: "domains that change hands" },
  {
    user: "lifecycle",
    stream: "LIFECYCLE",
    sees: "who may use which project, past the grants: inside the trust boundary",
  },
  { user: "notices", stream: "NOTIFICATIONS", sees: "notices of every account" },
  { user: "decisions", stream: "DIRECTORY", sees: "what was decided here of domains, keys, memberships" },
]

const list = (subjects: ReadonlyArray<string>) => `[${subjects.map((subject) => JSON.stringify(subject)).join(", ")}]`

/** The inbox that a user's client has to be told (`inboxPrefix`, `--inbox-prefix`). */
const inboxOf = (user: string) => `_INBOX_${user}`

const entry = (user: string, about: string, permissions: ReadonlyArray<string>) => [
  `    # ${about}`,
  `    {`,
  `      user: ${user}`,
  `      password: $NATS_${user.toUpperCase()}_PASSWORD`,
  ...(permissions.length === 0
    ? []
    : [`      permissions {`, ...permissions.map((line) => `        ${line}`), `      }`]),
  `    }`,
]

const publisher = ({ says, subject, user }: Publisher) =>
  entry(user, `publishes ${subject}: ${says}`, [
    `publish: ${list([subject])}`,
    `subscribe: ${list([`${inboxOf(user)}.>`])}`,
  ])

const subscriber = ({ sees, stream, user }: Subscriber) =>
  entry(user, `follows ${stream}: ${sees}; first: nats consumer add ${stream} ${user} --pull --ack explicit`, [
    `publish: ${
      list([
        `$JS.API.CONSUMER.INFO.${stream}.${user}`,
        `$JS.API.CONSUMER.MSG.NEXT.${stream}.${user}`,
        `$JS.ACK.${stream}.${user}.>`,
      ])
    }`,
    `subscribe: ${list([`${inboxOf(user)}.>`])}`,
  ])

/** The whole block, as text. */
export const permissions = [
  `# Each password is a variable of nats-server's environment. All but the first user take an inbox of their own:`,
  `# _INBOX_<user>, which clients call inbox prefix.`,
  `authorization {`,
  `  users = [`,
  ...entry(
    "bailiwick",
    "the program itself, and the operator's tools: NATS_URL=nats://bailiwick:PASSWORD@HOST:4222",
    [],
  ),
  ...publishers.flatMap(publisher),
  ...subscribers.flatMap(subscriber),
  `  ]`,
  `}`,
].join("\n")
