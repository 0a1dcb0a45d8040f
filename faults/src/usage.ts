/** The command line is wrong: the message is all that the caller needs, without a stack. */
export class UsageError extends Error {}
