/* What libcurl.a wants of libraries that are left out of libpenstock-net.so. Must not pretend to
   work.

   curl_global_init starts libssh2 and asks some for their version. What a server's answer or the
   address of a server or proxy can make libcurl call fails, and libcurl passes the error on.
   Everything else aborts: the client keeps to the protocols http and https, to HTTP/1.1, to no
   cookies and to no negotiated authentication (protocol/kube/transfer.cc), so that nothing calls
   it. */
#include <stddef.h>
#include <stdlib.h>

int libssh2_init(int flags) { return (void)flags, 0; }
const char* libssh2_version(int least) { return (void)least, "none"; }
const char* psl_get_version(void) { return "none"; }
const char* idn2_check_version(const char* least) { return (void)least, "none"; }
/* The beginning of nghttp2_info, nghttp2.h. */
struct nghttp2_info {
  int age, version_num;
  const char *version_str, *proto_str;
};
const struct nghttp2_info* nghttp2_version(int least) {
  static const struct nghttp2_info none = {1, 0, "none", "none"};
  return (void)least, &none;
}
unsigned ZSTD_versionNumber(void) { return 0; }
unsigned BrotliDecoderVersion(void) { return 0; }
void* GSS_C_NT_HOSTBASED_SERVICE;

/* A host name that is not ASCII. The value is IDN2_DISALLOWED, idn2.h. */
int idn2_lookup_ul(const char* name, char** ascii, int flags) {
  return (void)name, (void)ascii, (void)flags, -304;
}
/* An answer with "Transfer-Encoding: br" or "zstd", which libcurl decodes without having asked for
 * it. */
void* BrotliDecoderCreateInstance(void* allocate, void* release, void* opaque) {
  return (void)allocate, (void)release, (void)opaque, NULL;
}
void* ZSTD_createDStream(void) { return NULL; }

#define ABSENT(name) \
  void name(void) { abort(); }

/* clang-format off */
ABSENT(BrotliDecoderDecompressStream) ABSENT(BrotliDecoderDestroyInstance) ABSENT(BrotliDecoderGetErrorCode)
ABSENT(RTMP_Alloc) ABSENT(RTMP_Close) ABSENT(RTMP_Connect1) ABSENT(RTMP_ConnectStream) ABSENT(RTMP_Free) ABSENT(RTMP_Init) ABSENT(RTMP_Read)
ABSENT(RTMP_SetBufferMS) ABSENT(RTMP_SetupURL) ABSENT(RTMP_Write)
ABSENT(ZSTD_decompressStream) ABSENT(ZSTD_freeDStream) ABSENT(ZSTD_isError)
ABSENT(ber_bvfree) ABSENT(ber_free) ABSENT(ber_memfree) ABSENT(ber_memvfree) ABSENT(ber_sockbuf_add_io)
ABSENT(gss_delete_sec_context) ABSENT(gss_display_name) ABSENT(gss_display_status) ABSENT(gss_import_name) ABSENT(gss_init_sec_context)
ABSENT(gss_inquire_context) ABSENT(gss_release_buffer) ABSENT(gss_release_name) ABSENT(gss_unwrap) ABSENT(gss_wrap)
ABSENT(idn2_free)
ABSENT(ldap_abandon_ext) ABSENT(ldap_err2string) ABSENT(ldap_free_urldesc) ABSENT(ldap_get_attribute_ber) ABSENT(ldap_get_dn_ber)
ABSENT(ldap_get_option) ABSENT(ldap_init_fd) ABSENT(ldap_memfree) ABSENT(ldap_msgfree) ABSENT(ldap_msgtype) ABSENT(ldap_parse_result)
ABSENT(ldap_parse_sasl_bind_result) ABSENT(ldap_pvt_url_scheme2proto) ABSENT(ldap_result) ABSENT(ldap_sasl_bind) ABSENT(ldap_search_ext)
ABSENT(ldap_set_option) ABSENT(ldap_start_tls) ABSENT(ldap_unbind_ext) ABSENT(ldap_url_parse)
ABSENT(libssh2_agent_connect) ABSENT(libssh2_agent_disconnect) ABSENT(libssh2_agent_free) ABSENT(libssh2_agent_get_identity)
ABSENT(libssh2_agent_init) ABSENT(libssh2_agent_list_identities) ABSENT(libssh2_agent_userauth) ABSENT(libssh2_channel_free)
ABSENT(libssh2_channel_read_ex) ABSENT(libssh2_channel_send_eof) ABSENT(libssh2_channel_wait_closed) ABSENT(libssh2_channel_wait_eof)
ABSENT(libssh2_channel_write_ex) ABSENT(libssh2_exit) ABSENT(libssh2_hostkey_hash) ABSENT(libssh2_knownhost_add) ABSENT(libssh2_knownhost_checkp)
ABSENT(libssh2_knownhost_del) ABSENT(libssh2_knownhost_free) ABSENT(libssh2_knownhost_get) ABSENT(libssh2_knownhost_init)
ABSENT(libssh2_knownhost_readfile) ABSENT(libssh2_knownhost_writefile) ABSENT(libssh2_scp_recv2) ABSENT(libssh2_scp_send64)
ABSENT(libssh2_session_abstract) ABSENT(libssh2_session_block_directions) ABSENT(libssh2_session_callback_set) ABSENT(libssh2_session_disconnect_ex)
ABSENT(libssh2_session_flag) ABSENT(libssh2_session_free) ABSENT(libssh2_session_handshake) ABSENT(libssh2_session_hostkey)
ABSENT(libssh2_session_init_ex) ABSENT(libssh2_session_last_errno) ABSENT(libssh2_session_last_error) ABSENT(libssh2_session_method_pref)
ABSENT(libssh2_session_set_blocking) ABSENT(libssh2_sftp_close_handle) ABSENT(libssh2_sftp_init) ABSENT(libssh2_sftp_last_error)
ABSENT(libssh2_sftp_mkdir_ex) ABSENT(libssh2_sftp_open_ex) ABSENT(libssh2_sftp_read) ABSENT(libssh2_sftp_readdir_ex) ABSENT(libssh2_sftp_rename_ex)
ABSENT(libssh2_sftp_rmdir_ex) ABSENT(libssh2_sftp_seek64) ABSENT(libssh2_sftp_shutdown) ABSENT(libssh2_sftp_stat_ex) ABSENT(libssh2_sftp_statvfs)
ABSENT(libssh2_sftp_symlink_ex) ABSENT(libssh2_sftp_unlink_ex) ABSENT(libssh2_sftp_write) ABSENT(libssh2_userauth_authenticated)
ABSENT(libssh2_userauth_keyboard_interactive_ex) ABSENT(libssh2_userauth_list) ABSENT(libssh2_userauth_password_ex)
ABSENT(libssh2_userauth_publickey_fromfile_ex)
ABSENT(nghttp2_http2_strerror) ABSENT(nghttp2_is_fatal) ABSENT(nghttp2_option_del) ABSENT(nghttp2_option_new)
ABSENT(nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation) ABSENT(nghttp2_pack_settings_payload) ABSENT(nghttp2_priority_spec_init)
ABSENT(nghttp2_session_callbacks_del) ABSENT(nghttp2_session_callbacks_new) ABSENT(nghttp2_session_callbacks_set_error_callback)
ABSENT(nghttp2_session_callbacks_set_on_begin_headers_callback) ABSENT(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)
ABSENT(nghttp2_session_callbacks_set_on_frame_recv_callback) ABSENT(nghttp2_session_callbacks_set_on_header_callback)
ABSENT(nghttp2_session_callbacks_set_on_stream_close_callback) ABSENT(nghttp2_session_callbacks_set_send_callback)
ABSENT(nghttp2_session_check_request_allowed) ABSENT(nghttp2_session_client_new2) ABSENT(nghttp2_session_del)
ABSENT(nghttp2_session_get_remote_settings) ABSENT(nghttp2_session_get_remote_window_size) ABSENT(nghttp2_session_get_stream_remote_window_size)
ABSENT(nghttp2_session_get_stream_user_data) ABSENT(nghttp2_session_mem_recv) ABSENT(nghttp2_session_resume_data) ABSENT(nghttp2_session_send)
ABSENT(nghttp2_session_set_local_window_size) ABSENT(nghttp2_session_set_stream_user_data) ABSENT(nghttp2_session_upgrade2)
ABSENT(nghttp2_session_want_read) ABSENT(nghttp2_session_want_write) ABSENT(nghttp2_strerror) ABSENT(nghttp2_submit_ping)
ABSENT(nghttp2_submit_priority) ABSENT(nghttp2_submit_request) ABSENT(nghttp2_submit_rst_stream) ABSENT(nghttp2_submit_settings)
ABSENT(psl_builtin) ABSENT(psl_free) ABSENT(psl_is_cookie_domain_acceptable) ABSENT(psl_latest)
