/** Start of a signature that a consumer gave. A signature by the rules starts with their version instead. */
export const OWN_SIGNATURE = 'own:'
