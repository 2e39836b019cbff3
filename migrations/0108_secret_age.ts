/** When a webhook's signing secret was made; null: by an earlier release, which kept no time. */
const statements: ReadonlyArray<string> = [`alter table webhooks add column secret_made_at timestamptz`]

export default statements
