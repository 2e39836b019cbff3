/**
 * The broker's users as a block of nats-server's configuration: one for each kind of publisher, which may publish to
 * its own subject alone (directory lines decide about access), and one for each stream that others may follow. A
 * follower reads through one durable consumer that the operator makes: a user who may make consumers could have a
 * stream delivered to any subject.
 *
 * Each user has an inbox prefix of its own. With `_INBOX.>`, the default of clients, each user could read the messages
 * that are handed out to the others.
 */
import { directorySubjects, identityDirectorySubjects } from "../../schemas/bus/DirectoryMessages.ts"
import { BusStreams, type StreamName } from "../../schemas/bus/BusStreams.ts"

interface Publisher {
  readonly user: string
  readonly subject: string
  readonly says: string
}

const publishers: ReadonlyArray<Publisher> = [
  { user: "mail_events", subject: BusStreams.EVENTS.subjects[0], says: "what happened to mail" },
  { user: "notifications", subject: BusStreams.EVENTS.subjects[1], says: "notices to accounts" },
  {
    user: "mail_directory",
    subject: directorySubjects,
    says: "accounts, workspaces, domains; this user controls the mail side",
  },
  {
    user: "identity_directory",
    subject: identityDirectorySubjects,
    says: "people, institutions, projects; with IDENTITY_DIRECTORY=follow this user decides about all access",
  },
]

interface Subscriber {
  readonly user: string
  readonly stream: StreamName
  readonly sees: string
}

const subscribers: ReadonlyArray<Subscriber> = [
  { user: "attempts", stream: "RESULTS", sees: "each attempt at a webhook" },
  { user: "dead_letters", stream: "DEAD_LETTERS", sees: "deliveries that failed for good" },
  { user: "transfers", stream: "TRANSFERS", sees: "domains that change hands" },
  {
    user: "lifecycle",
    stream: "LIFECYCLE",
    sees: "who may use which project, without service grants: inside the trust boundary",
  },
  { user: "notices", stream: "NOTIFICATIONS", sees: "notices of every account" },
  { user: "decisions", stream: "DIRECTORY", sees: "decisions about domains, keys, memberships" },
]

const list = (subjects: ReadonlyArray<string>) => `[${subjects.map((subject) => JSON.stringify(subject)).join(", ")}]`

/** The inbox prefix that a user's client must be given (`inboxPrefix`, `--inbox-prefix`). */
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
  `# Each password is a variable of nats-server's environment. All but the first user need an inbox prefix of their own:`,
  `# _INBOX_<user>.`,
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
