// Resources that fail to open.
export default {
  database: {
    open() {
      throw Object.assign(new Error('the database is away'), { code: 'E_OFF' })
    },
  },
}
