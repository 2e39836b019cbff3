/**
 * The paths of this program's pages that mails, notices and Slack messages link to. A link is made by `appPath` alone, so
 * that one list has all of them: `test/src/http/pages/AppLinks.test.ts` asks each over HTTP.
 */
export const appPaths = {
  webhook: "/webhooks/:webhook_id",
  delivery: "/webhooks/:webhook_id/deliveries/:delivery_id",
  apiKeys: "/api-keys",
  domainTransfer: "/domain-transfers/:transfer_id",
  acceptTransfer: "/transfers/accept/:token",
  stopTransfer: "/transfers/stop/:token",
  enrollment: "/enrollments/:token",
  linkRequest: "/link-requests/:link_request_id",
  requests: "/requests",
  decide: "/decide",
  review: "/decide/:review_id",
  project: "/projects/:project_id",
} as const

export type AppPathName = keyof typeof appPaths

type ParametersOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParametersOf<Rest>
  : Path extends `${string}:${infer Name}` ? Name
  : never

/** A pattern with its parameters filled in. */
export const filledPath = (pattern: string, params: Readonly<Record<string, string | undefined>>): string =>
  pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""))

/** The path of a page, beginning with one slash. */
export const appPath = <Name extends AppPathName>(
  name: Name,
  params: Readonly<Record<ParametersOf<(typeof appPaths)[Name]>, string>>,
): string => filledPath(appPaths[name], params)
