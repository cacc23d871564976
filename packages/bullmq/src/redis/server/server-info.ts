// Reads the fields of a server's reply to INFO.

/** Returns the value of a field, or undefined if the reply does not contain the field. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}

/** Returns the value of a numeric field, or undefined if the reply does not contain the field or its value is not a number. */
export function infoNumber(info: string, name: string): number | undefined {
  const value = Number(infoField(info, name))
  return Number.isFinite(value) ? value : undefined
}
