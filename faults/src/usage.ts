/** An error of the command line. Its message is shown without a stack. */
export class UsageError extends Error {}
