/** Returns the highest value, at least `least`. A list of any length: `Math.max(...values)` fails for long ones. */
export const highestOf = (values: readonly number[], least = 0): number =>
  values.reduce((most, value) => Math.max(most, value), least)
