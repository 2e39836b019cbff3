/**
 * The epoch in which the installation was open last before it was held. Events of earlier epochs that this database lacks were
 * looked at before it opened (services/recovery/LostHistory.ts). Null: a program of an earlier version began the hold.
 */
const statements: ReadonlyArray<string> = [
  `alter table installation add column lost_from_epoch integer`,
]

export default statements
