/** What the receiver answered to a failed attempt: its header fields, and the beginning of its body. */
const statements: ReadonlyArray<string> = [
  `alter table attempts add column response_headers jsonb, add column response_body text`,
]

export default statements
