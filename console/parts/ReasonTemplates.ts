/** Reasons that are often given. Each says what was looked at, since it stands in the evidence as it is sent. */

export const askingReasons: ReadonlyArray<string> = [
  "I work on this project from now on",
  "I stand in for a colleague who is away",
  "I go on working here after my Access ended",
]

export const approvingReasons: ReadonlyArray<string> = [
  "I know the person, and what they do here",
  "I asked the person and their sponsor about it",
  "It is as it was agreed before",
]

export const decliningReasons: ReadonlyArray<string> = [
  "It is not needed for the work here",
  "Another person has to ask for it",
  "It says too little: please ask again with more",
]

export const endingReasons: ReadonlyArray<string> = [
  "The work that it was for has ended",
  "The person has left",
  "It was approved by mistake",
]
