package fuse_index.spark.java.named;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import javax.security.sasl.AuthenticationException;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/** Lets in whoever has the server's token for a password, under any name: HiveServer2 makes one for each connection. */
public class TokenAsPassword implements PasswdAuthenticationProvider {
  private static volatile byte[] token;

  /** For all connections to come. */
  public static void expect(String given) { token = given.getBytes(StandardCharsets.UTF_8); }

  public void Authenticate(String user, String password) throws AuthenticationException {
    byte[] given = password == null ? new byte[0] : password.getBytes(StandardCharsets.UTF_8);
    if (token == null || !MessageDigest.isEqual(given, token)) throw new AuthenticationException("the password is not this server's token");
  }
}
