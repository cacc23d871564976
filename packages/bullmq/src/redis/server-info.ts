// Reads the fields of a server's reply to INFO.

/** Returns the value of a field, or undefined if the reply does not contain the field. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}

/** Like {@link infoField}, for a field that holds a number. */
export function infoNumber(info: string, name: string): number | undefined {
  const value = Number(infoField(info, name))
  return Number.isFinite(value) ? value : undefined
}
